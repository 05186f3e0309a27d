// The race check against happens-before by brute force, on random scripts.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/order_machine.h"
#include "support/order_model.h"
#include "support/sanitized.h"

TestSuite(order, .timeout = 600);

// ---- the comparison ----

typedef struct Difference {
  bool is;
  char text[600];
} Difference;

// Whether the check has found what the model has: the access, its byte, and one that it stands badly to.
static bool same_finding(const Model *model, const Finding *finding, const Conflict *found) {
  return found->verdict == finding->verdict && found->byte.region == finding->byte.region &&
         found->byte.offset == finding->byte.offset && found->here.event == finding->event &&
         found->here.thread == finding->thread && model_agrees(model, finding, found->other.event, found->other.thread);
}

static void describe(Difference *difference, const Finding *finding, const Conflict *found) {
  static const char *const verdicts[] = {"nothing", "a race", "equal stores", "a missing proxy fence"};
  char text[300] = "nothing";
  if (found)
    snprintf(text, sizeof text, "%s between line %d, thread %d and line %d, thread %d at byte %d of region %d",
             verdicts[found->verdict], found->here.event + 1, found->here.thread, found->other.event + 1,
             found->other.thread, found->byte.offset, found->byte.region);
  difference->is = true;
  snprintf(difference->text, sizeof difference->text,
           "expected %s by line %d, thread %d, at byte %d of region %d; found: %s", verdicts[finding->verdict],
           finding->event + 1, finding->thread, finding->byte.offset, finding->byte.region, text);
}

// Lets the race check follow a script that the model has followed up to its finding.
static Difference compare(const Model *model, const Finding *finding) {
  const Script *script = model->script;
  Difference difference = {.is = false};
  OrderMachine *machine = order_machine_open(script);
  int end = finding->verdict ? finding->event + 1 : script->count, last = -1;
  const Conflict *found = NULL;
  while (!found && ++last < end) {
    order_machine_follow(machine, last);
    found = order_machine_found(machine);
  }
  bool is_same = found && finding->verdict ? same_finding(model, finding, found) : !found && !finding->verdict;
  bool may_differ = finding->verdict && finding->may_be_missed && last >= finding->event;
  if (!is_same && !may_differ) describe(&difference, finding, found);
  order_machine_close(machine);
  return difference;
}

// The same of a script that the model has not followed yet.
static Difference compare_script(const Script *script) {
  static Model model;
  Finding finding = {.verdict = FINE};
  model_begin(&model, script);
  for (int i = 0; i < script->count && model_follow(&model, i, &finding); i++) {}
  return compare(&model, &finding);
}

// ---- shrinking ----

static void drop_event(Script *script, int event) {
  memmove(&script->events[event], &script->events[event + 1],
          (size_t)(--script->count - event) * sizeof *script->events);
}

// Tries a smaller script; keeps it if the two still differ.
static bool keep_if_different(Script *script, const Script *smaller) {
  if (!compare_script(smaller).is) return false;
  *script = *smaller;
  return true;
}

static bool shrink_event(Script *script, int event) {
  Script smaller = *script;
  drop_event(&smaller, event);
  if (keep_if_different(script, &smaller)) return true;
  Mask mask = script->events[event].mask;
  for (Mask rest = mask; rest && (mask & (mask - 1)); rest &= rest - 1) {
    smaller = *script;
    smaller.events[event].mask = rest & -rest;
    if (keep_if_different(script, &smaller)) return true;
  }
  return false;
}

static void shrink(Script *script) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int event = script->count - 1; event >= 0; event--)
      changed |= event < script->count && shrink_event(script, event);
  }
}

static uint64_t environment_number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

// ORDER_SCRIPTS=n: so many; ORDER_FIRST=seed: from this one on.
Test(order, is_that_of_brute_force) {
  uint64_t count = environment_number("ORDER_SCRIPTS", SANITIZED ? 5000 : 100000);
  uint64_t first = environment_number("ORDER_FIRST", 0), with = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    static Script script;
    static Model model;
    Finding finding;
    random_script(&script, &model, &finding, seed);
    Difference difference = compare(&model, &finding);
    with += finding.verdict != FINE;
    if (!difference.is) continue;
    shrink(&script);
    difference = compare_script(&script);
    script_print(&script);
    cr_assert(false, "script %llu: %s", (unsigned long long)seed, difference.text);
  }
  cr_expect(count < 100 || (with > count / 4 && with < count * 3 / 4), "%d of %d scripts have findings", (int)with,
            (int)count);
}
