// Instructions in which lanes exchange data: shfl, vote, match, redux, elect, activemask. PTX ISA 9.7.9.6, 9.7.13.
#include <string.h>

#include "../report/undefined.h"
#include "../warp/lanes.h"
#include "../warp/machine.h"
#include "../warp/decoder.h"
#include "families.h"

// The lanes that execute together with `lane`: those of its member mask. Every one of them is here: interpreter.c
// waited for it.
static Mask member_lanes(Warp *warp, const Inst *inst, Mask mask, int lane) {
  return (SLOT(warp, inst->members, const u32)[lane] | 1u << lane) & mask;
}

// ---- shfl.sync ----

typedef enum ShuffleMode { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX } ShuffleMode;

// The lane that `lane` reads, and whether it is in its segment. PTX ISA 9.7.9.6: c holds a clamp and a segment mask.
static bool shuffle_source(ShuffleMode mode, int lane, u32 b, u32 c, int *from) {
  int bits = (int)(b & 31), clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
  int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
  bool inside = true;
  switch (mode) {
  case SHUFFLE_UP:
    *from = lane - bits;
    inside = *from >= highest;
    break;
  case SHUFFLE_DOWN:
    *from = lane + bits;
    inside = *from <= highest;
    break;
  case SHUFFLE_BFLY:
    *from = lane ^ bits;
    inside = *from <= highest;
    break;
  case SHUFFLE_IDX:
    *from = lowest | (bits & ~segment);
    inside = *from <= highest;
    break;
  }
  if (!inside) *from = lane;
  return inside;
}

// A lane that has exited, that the block does not have, or that the reader does not name as a member has no value to
// give. Reductions of a part of a warp read such values, and do not use them.
static void check_source(Warp *warp, const Inst *inst, int lane, int from, u32 members) {
  if (!warp_launch(warp)->check.on || warp->rehearses || warp->live & members & 1u << from) return;
  UndefinedSource source = {.kind = SHUFFLED, .size = from, .whole = true};
  undefined_add(warp, inst, lane, &source, inst->d, sizeof(u32), NULL);
}

static void execute_shfl(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32), source[LANES];
  Mask *inside_mask = SLOT(warp, inst->d2, Mask), inside = 0;
  const u32 *b = SLOT(warp, inst->b, const u32), *c = SLOT(warp, inst->c, const u32);
  const u32 *members = SLOT(warp, inst->members, const u32);
  memcpy(source, SLOT(warp, inst->a, const u32), sizeof source);
  u32 result[LANES];
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), from = lane;
    if (shuffle_source((ShuffleMode)inst->flags, lane, b[lane], c[lane], &from)) inside |= 1u << lane;
    check_source(warp, inst, lane, from, members[lane]);
    result[lane] = mask >> from & 1 ? source[from] : 0;  // PTX leaves it open: an H200 gives 0 (tests/rules)
  }
  for (Mask rest = mask; rest; rest &= rest - 1) d[__builtin_ctz(rest)] = result[__builtin_ctz(rest)];
  *inside_mask = (*inside_mask & ~mask) | inside;
}

DecodeResult decode_shfl(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"sync", "up", "down", "bfly", "idx", NULL};
  static const SyncOperands operands = {.a = 4, .b = 4, .c = 4, .d = 4, .d2 = 1};
  if (!decoder_operands(decoder, source, 5, 5) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (!ptx_has(source, "sync")) return decoder_error(decoder, source, "sm_90 has only shfl.sync");
  const PtxOperand *to = &source->operands[0];
  bool pair = to->kind == PTX_OPERAND_PAIR;
  inst->d = decoder_destination(decoder, pair ? &to->items[0] : to, PTX_B32);
  inst->d2 = pair ? decoder_destination(decoder, &to->items[1], PTX_PRED) : decoder_slot(decoder, 1);
  inst->a = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->b = decoder_source(decoder, &source->operands[2], PTX_B32);
  inst->c = decoder_source(decoder, &source->operands[3], PTX_B32);
  inst->members = decoder_source(decoder, &source->operands[4], PTX_B32);
  inst->converge = CONVERGE_MEMBERS;
  inst->extra = &operands;
  inst->flags = ptx_has(source, "up")     ? SHUFFLE_UP
                : ptx_has(source, "down") ? SHUFFLE_DOWN
                : ptx_has(source, "bfly") ? SHUFFLE_BFLY
                                          : SHUFFLE_IDX;
  inst->execute = execute_shfl;
  return DECODED;
}

// ---- vote.sync ----

typedef enum VoteMode { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT } VoteMode;

static void execute_vote(Warp *warp, const Inst *inst, Mask mask) {
  Mask predicate = *SLOT(warp, inst->a, const Mask) ^ (inst->immediate ? FULL_MASK : 0), result = 0;
  u32 *ballot = SLOT(warp, inst->d, u32);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Mask team = member_lanes(warp, inst, mask, lane), yes = predicate & team;
    bool holds = false;
    switch ((VoteMode)inst->flags) {
    case VOTE_ALL: holds = yes == team; break;
    case VOTE_ANY: holds = yes != 0; break;
    case VOTE_UNI: holds = yes == team || yes == 0; break;
    case VOTE_BALLOT: ballot[lane] = yes; break;
    }
    result |= (Mask)holds << lane;
  }
  if (inst->flags == VOTE_BALLOT) return;
  Mask *d = SLOT(warp, inst->d, Mask);
  *d = (*d & ~mask) | result;
}

DecodeResult decode_vote(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"sync", "all", "any", "uni", "ballot", NULL};
  static const SyncOperands votes = {.a = 1, .d = 1}, ballots = {.a = 1, .d = 4};
  if (!decoder_operands(decoder, source, 3, 3) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  if (!ptx_has(source, "sync")) return decoder_error(decoder, source, "sm_90 has only vote.sync");
  inst->flags = ptx_has(source, "ballot") ? VOTE_BALLOT
                : ptx_has(source, "all")  ? VOTE_ALL
                : ptx_has(source, "any")  ? VOTE_ANY
                                          : VOTE_UNI;
  inst->d = decoder_destination(decoder, &source->operands[0], inst->flags == VOTE_BALLOT ? PTX_B32 : PTX_PRED);
  inst->a = decoder_source(decoder, &source->operands[1], PTX_PRED);
  inst->immediate = source->operands[1].negated;
  inst->members = decoder_source(decoder, &source->operands[2], PTX_B32);
  inst->converge = CONVERGE_MEMBERS;
  inst->extra = inst->flags == VOTE_BALLOT ? &ballots : &votes;
  inst->execute = execute_vote;
  return DECODED;
}

// ---- match.sync ----

static uint64_t value_of(Warp *warp, const Inst *inst, int lane) {
  return inst->size == 8 ? SLOT(warp, inst->a, const u64)[lane] : SLOT(warp, inst->a, const u32)[lane];
}

static void execute_match(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32);
  Mask *all_equal = SLOT(warp, inst->d2, Mask), equal_everywhere = 0;
  Mask results[LANES];
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Mask team = member_lanes(warp, inst, mask, lane), equal = 0;
    for (Mask others = team; others; others &= others - 1)
      if (value_of(warp, inst, __builtin_ctz(others)) == value_of(warp, inst, lane)) equal |= others & -others;
    results[lane] = inst->flags && equal != team ? 0 : equal;
    equal_everywhere |= (Mask)(equal == team) << lane;
  }
  for (Mask rest = mask; rest; rest &= rest - 1) d[__builtin_ctz(rest)] = results[__builtin_ctz(rest)];
  if (inst->flags) *all_equal = (*all_equal & ~mask) | equal_everywhere;
}

DecodeResult decode_match(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"sync", "any", "all", NULL};
  static const SyncOperands operands[2][2] = {{{.a = 4, .d = 4}, {.a = 4, .d = 4, .d2 = 1}},
                                              {{.a = 8, .d = 4}, {.a = 8, .d = 4, .d2 = 1}}};
  if (!decoder_operands(decoder, source, 3, 3) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  PtxType type = ptx_instruction_type(source);
  if (type != PTX_B32 && type != PTX_B64) return decoder_error(decoder, source, "works on .b32 and .b64");
  const PtxOperand *to = &source->operands[0];
  bool pair = to->kind == PTX_OPERAND_PAIR;
  inst->flags = ptx_has(source, "all");
  inst->size = (uint8_t)ptx_type_size(type);
  inst->d = decoder_destination(decoder, pair ? &to->items[0] : to, PTX_B32);
  inst->d2 = pair ? decoder_destination(decoder, &to->items[1], PTX_PRED) : decoder_slot(decoder, 1);
  inst->a = decoder_source(decoder, &source->operands[1], type);
  inst->members = decoder_source(decoder, &source->operands[2], PTX_B32);
  inst->converge = CONVERGE_MEMBERS;
  inst->extra = &operands[inst->size == 8][inst->flags];
  inst->execute = execute_match;
  return DECODED;
}

// ---- redux.sync ----

typedef u32 Reduce(u32 a, u32 b);
static u32 reduce_add(u32 a, u32 b) { return a + b; }
static u32 reduce_and(u32 a, u32 b) { return a & b; }
static u32 reduce_or(u32 a, u32 b) { return a | b; }
static u32 reduce_xor(u32 a, u32 b) { return a ^ b; }
static u32 reduce_min_u(u32 a, u32 b) { return a < b ? a : b; }
static u32 reduce_max_u(u32 a, u32 b) { return a > b ? a : b; }
static u32 reduce_min_s(u32 a, u32 b) { return (s32)a < (s32)b ? a : b; }
static u32 reduce_max_s(u32 a, u32 b) { return (s32)a > (s32)b ? a : b; }

static const struct {
  const char *operation;
  PtxType type;
  Reduce *reduce;
} reductions[] = {{"add", PTX_U32, reduce_add},   {"add", PTX_S32, reduce_add},   {"and", PTX_B32, reduce_and},
                  {"or", PTX_B32, reduce_or},     {"xor", PTX_B32, reduce_xor},   {"min", PTX_U32, reduce_min_u},
                  {"max", PTX_U32, reduce_max_u}, {"min", PTX_S32, reduce_min_s}, {"max", PTX_S32, reduce_max_s}};

static void execute_redux(Warp *warp, const Inst *inst, Mask mask) {
  Reduce *reduce = reductions[inst->flags].reduce;
  const u32 *a = SLOT(warp, inst->a, const u32);
  u32 *d = SLOT(warp, inst->d, u32), results[LANES];
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    Mask team = member_lanes(warp, inst, mask, lane);
    u32 result = a[__builtin_ctz(team)];
    for (Mask others = team & (team - 1); others; others &= others - 1)
      result = reduce(result, a[__builtin_ctz(others)]);
    results[lane] = result;
  }
  for (Mask rest = mask; rest; rest &= rest - 1) d[__builtin_ctz(rest)] = results[__builtin_ctz(rest)];
}

DecodeResult decode_redux(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"sync", "add", "and", "or", "xor", "min", "max", NULL};
  static const SyncOperands operands = {.a = 4, .d = 4};
  if (!decoder_operands(decoder, source, 3, 3) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  PtxType type = ptx_instruction_type(source);
  inst->execute = NULL;
  for (uint32_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
    if (reductions[i].type == type && ptx_has(source, reductions[i].operation)) {
      inst->flags = i;
      inst->execute = execute_redux;
    }
  if (!inst->execute) return decoder_error(decoder, source, "no such operation on .%s", ptx_type_name(type));
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B32);
  inst->a = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->members = decoder_source(decoder, &source->operands[2], PTX_B32);
  inst->converge = CONVERGE_MEMBERS;
  inst->extra = &operands;
  return DECODED;
}

// ---- elect.sync, activemask ----

static void execute_elect(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32);
  Mask *p = SLOT(warp, inst->d2, Mask), elected = 0;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest), leader = __builtin_ctz(member_lanes(warp, inst, mask, lane));
    d[lane] = (u32)leader;
    elected |= (Mask)(leader == lane) << lane;
  }
  *p = (*p & ~mask) | elected;
}

DecodeResult decode_elect(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {"sync", NULL};
  static const SyncOperands operands = {.d = 4, .d2 = 1};
  if (!decoder_operands(decoder, source, 2, 2) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  const PtxOperand *to = &source->operands[0];
  if (to->kind != PTX_OPERAND_PAIR) return decoder_error(decoder, source, "needs a destination d|p");
  inst->d = decoder_destination(decoder, &to->items[0], PTX_B32);
  inst->d2 = decoder_destination(decoder, &to->items[1], PTX_PRED);
  inst->members = decoder_source(decoder, &source->operands[1], PTX_B32);
  inst->converge = CONVERGE_MEMBERS;
  inst->extra = &operands;
  inst->execute = execute_elect;
  return DECODED;
}

static void execute_activemask(Warp *warp, const Inst *inst, Mask mask) {
  u32 *d = SLOT(warp, inst->d, u32);
  EACH_LANE(mask, d[LANE] = mask);
}

DecodeResult decode_activemask(Decoder *decoder, const PtxInstruction *source, Inst *inst) {
  static const char *const allowed[] = {NULL};
  if (!decoder_operands(decoder, source, 1, 1) || !decoder_modifiers(decoder, source, allowed)) return DECODE_FAILED;
  inst->d = decoder_destination(decoder, &source->operands[0], PTX_B32);
  inst->execute = execute_activemask;
  return DECODED;
}
