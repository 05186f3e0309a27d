// The kernels of the rules: see rules.h. Each block writes RULE_WORDS words, which must be the same in every block.
#include "barrier_rules.h"
#include "end_rules.h"
#include "mbarrier_rules.h"
#include "narrow_rules.h"
#include "register_rules.h"
#include "release_rules.h"
#include "together_rules.h"
#include "wgmma_rules.h"
