// Whether an H100 runs a module: what its .version and .target say, and whether its instructions exist there.
//
// An H100 runs PTX for sm_90a, and by JIT compilation PTX for any older architecture, but only the instructions that
// the named architecture has. The tables, and the column `target` of the table of instructions, are what ptxas 13.0
// accepts.
#include "module.h"

#include <stdio.h>
#include <string.h>

#include "state.h"

// ---- .version ----

// CUDA 13. Its later releases write 9.1 and so on, which add to 9.0: what they add is refused as an unknown
// instruction.
enum { NEWEST_MAJOR = 9 };

static bool check_version(const PtxHeader *header, EmulatorError *error) {
  static const int last_minor[NEWEST_MAJOR] = {-1, 5, 3, 2, 3, 0, 5, 8, 8};
  int major = header->version_major, minor = header->version_minor;
  if (major > NEWEST_MAJOR)
    return run_fail(error, header->version_line, ".version %d.%d: the newest known PTX is %d, of CUDA 13", major, minor,
                    NEWEST_MAJOR);
  if (major < NEWEST_MAJOR && minor > last_minor[major])
    return run_fail(error, header->version_line, ".version %d.%d: there is no such version of PTX", major, minor);
  return true;
}

// ---- .target ----

typedef struct Target {
  const char *name;  // without "sm_" or "compute_"
  int number;        // 10 times that, and 1 more with an a
  int major, minor;  // of the first PTX that knows it
} Target;

static const Target targets[] = {
    {"10", 100, 1, 0},     {"11", 110, 1, 0}, {"12", 120, 1, 2}, {"13", 130, 1, 2}, {"20", 200, 2, 0},
    {"21", 210, 2, 0},     {"30", 300, 3, 0}, {"32", 320, 4, 0}, {"35", 350, 3, 1}, {"37", 370, 4, 1},
    {"50", 500, 4, 0},     {"52", 520, 4, 1}, {"53", 530, 4, 2}, {"60", 600, 5, 0}, {"61", 610, 5, 0},
    {"62", 620, 5, 0},     {"70", 700, 6, 0}, {"72", 720, 6, 1}, {"75", 750, 6, 3}, {"80", 800, 7, 0},
    {"86", 860, 7, 1},     {"87", 870, 7, 4}, {"88", 880, 7, 3}, {"89", 890, 7, 8}, {"90", 900, 7, 8},
    {"90a", SM_90A, 8, 0},
};

static const Target *find_target(const char *name) {
  const char *digits = strchr(name, '_');
  if (!digits || (strncmp(name, "sm_", 3) && strncmp(name, "compute_", 8))) return NULL;
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (!strcmp(digits + 1, targets[i].name)) return &targets[i];
  return NULL;
}

// NULL after a report.
static const Target *check_target(const PtxHeader *header, EmulatorError *error) {
  const Target *target = find_target(header->target);
  int major = header->version_major, minor = header->version_minor;
  if (!target)
    run_fail(error, header->target_line, ".target %.60s: an H100 runs PTX for sm_90a, or for sm_90 and older",
             header->target);
  else if (major < target->major || (major == target->major && minor < target->minor)) {
    run_fail(error, header->target_line, ".target %s needs .version %d.%d, this is %d.%d", header->target,
             target->major, target->minor, major, minor);
    target = NULL;
  }
  return target;
}

// ---- instructions ----

// What modifiers need beyond the row of their instruction. A rule holds for an instruction with one of the opcodes and
// one of the modifiers, but none of `except`. No opcodes: any.
typedef struct Rule {
  int target;
  const char *opcodes, *modifiers, *except;
} Rule;

static const Rule rules[] = {
    {SM_90, "", "cluster shared::cluster", NULL},
    {SM_90, "fence", "async tensormap::generic", NULL},
    {SM_90, "prefetch", "tensormap", NULL},
    {SM_90, "atom red", "v2 v4 v8 b128 bf16 bf16x2", NULL},
    {SM_90, "mbarrier", "relaxed", NULL},
    {SM_90, "add sub mul set setp ex2 tanh", "bf16 bf16x2", NULL},
    {SM_90, "cvt", "bf16", "f32"},
    {SM_90, "cvt", "tf32", "rna"},
    {SM_90, "add min max", "s16x2 u16x2", NULL},
    {SM_90, "min max", "relu", NULL},
    {SM_89, "cvt", "e4m3x2 e5m2x2", NULL},
    {SM_86, "min max", "xorsign", NULL},
    {SM_80, "abs neg min max fma cvt", "bf16 bf16x2", NULL},
    {SM_80, "min max", "NaN f16 f16x2", NULL},
    {SM_90, "fma", "oob", NULL},
    {SM_80, "fma cvt", "relu", NULL},
    {SM_80, "cvt", "f16x2 tf32", NULL},
    {SM_80, "mma", "m16n8k16 m16n8k32 bf16 tf32", NULL},
    {SM_80, "wmma", "bf16 tf32", NULL},
};

// Whether a list of words has the word.
static bool lists(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

static bool has_one_of(const PtxInstruction *instruction, const char *modifiers) {
  for (int i = 0; i < instruction->modifier_count; i++)
    if (lists(modifiers, instruction->modifiers[i])) return true;
  return false;
}

static bool holds(const Rule *rule, const PtxInstruction *instruction) {
  return (!*rule->opcodes || lists(rule->opcodes, instruction->opcode)) && has_one_of(instruction, rule->modifiers) &&
         !(rule->except && has_one_of(instruction, rule->except));
}

// %cluster_ctarank and its kin.
static bool names_cluster_register(const PtxOperand *operands, int count) {
  for (int i = 0; i < count; i++)
    if ((operands[i].kind == PTX_OPERAND_SPECIAL && strstr(operands[i].name, "cluster")) ||
        names_cluster_register(operands[i].items, operands[i].item_count))
      return true;
  return false;
}

// The oldest target that has an instruction, 0 when all have it or it is unknown.
static int needed_target(const PtxInstruction *instruction) {
  const Instruction *row = instruction_find(instruction);
  int needed = row ? row->target : 0;
  if (needed < SM_90 && names_cluster_register(instruction->operands, instruction->operand_count)) needed = SM_90;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].target > needed && holds(&rules[i], instruction)) needed = rules[i].target;
  return needed;
}

static bool check_instruction(const PtxHeader *header, const Target *target, const PtxInstruction *instruction,
                              EmulatorError *error) {
  int needed = needed_target(instruction);
  if (needed <= target->number) return true;
  char name[120];
  size_t used = (size_t)snprintf(name, sizeof name, "%s", instruction->opcode);
  for (int i = 0; i < instruction->modifier_count && used < sizeof name; i++)
    used += (size_t)snprintf(name + used, sizeof name - used, ".%s", instruction->modifiers[i]);
  return run_fail(error, instruction->line, "%s needs .target sm_%d%s, this module is for %.40s", name, needed / 10,
                  needed == SM_90A ? "a" : "", header->target);
}

bool target_check(const PtxModule *module, EmulatorError *error) {
  for (int i = 0; i < module->header_count; i++)
    if (!check_version(module->headers[i], error) || !check_target(module->headers[i], error)) return false;
  return true;
}

bool target_check_function(const PtxFunction *function, EmulatorError *error) {
  const PtxHeader *header = function->header;
  const Target *target = find_target(header->target);
  if (target->number == SM_90A) return true;
  if (target->number < SM_90 && (function->required_cluster[0] || function->max_cluster_rank))
    return run_fail(error, function->line, "a cluster needs .target sm_90, this module is for %.40s", header->target);
  for (int i = 0; i < function->instruction_count; i++)
    if (!check_instruction(header, target, &function->instructions[i], error)) return false;
  return true;
}
