// The PTX front end: text in, a parsed module out, or one error with its line.
//
//   PTX text --lexer.c--> tokens --parser.c--> PtxModule --decode.c--> Program
//
// The parser knows PTX's grammar and its scopes (a register or label declared inside braces shadows the outer one),
// not its instructions: every instruction is an opcode, its modifiers and its operands, exactly as written. What an
// instruction means is known to the family that executes it. PTX ISA, chapters 4 to 7.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Fundamental types, PTX ISA 5.2.
// clang-format off
typedef enum PtxType {
  PTX_NO_TYPE,
  PTX_PRED,
  PTX_B8, PTX_B16, PTX_B32, PTX_B64, PTX_B128,
  PTX_U8, PTX_U16, PTX_U32, PTX_U64,
  PTX_S8, PTX_S16, PTX_S32, PTX_S64,
  PTX_F16, PTX_F16X2, PTX_BF16, PTX_BF16X2, PTX_F32, PTX_F64,
  PTX_OTHER_TYPE,  // a type name that only some instruction modifiers use (tf32, e4m3, ...)
} PtxType;
// clang-format on

// The type that a modifier or a directive names ("u32", without the dot); PTX_NO_TYPE when it names none.
PtxType ptx_type_from_name(const char *name);
// Size in bytes; a predicate counts as 1, PTX_NO_TYPE as 0.
size_t ptx_type_size(PtxType type);
const char *ptx_type_name(PtxType type);

typedef enum PtxSpace { PTX_REG, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_PARAM, PTX_CONST } PtxSpace;

typedef struct PtxError {
  int line;  // of the PTX text, from 1; 0 when the error has no place
  char message[240];
  bool out_of_memory;  // the host has no memory for the module
} PtxError;

// Where an instruction came from, from .loc. An inlined call keeps the call site that brought it in.
typedef struct PtxLocation {
  int file;                              // index into PtxModule.files, never a hole
  int line, column;                      // from 1; 0 where the compiler knew none
  const char *function;                  // where it is, "cute::copy"; NULL when not inlined, or unknown
  const struct PtxLocation *inlined_at;  // NULL when not inlined
} PtxLocation;

typedef enum PtxOperandKind {
  PTX_OPERAND_REGISTER,  // index: into PtxFunction.registers; component: -1, or 0..3 for .x .y .z .w (.r .g .b .a)
  PTX_OPERAND_SPECIAL,   // name: "tid", "laneid", "clock64", ... without '%'; component: 0..3 for .x .. .w, else -1
  PTX_OPERAND_INTEGER,   // value: any integer literal, WARP_SZ included, two's complement
  PTX_OPERAND_FLOAT,     // value: the bits of a double (1.5 and 0d...); with is_f32 the 32 bits of a 0f... literal
  PTX_OPERAND_VARIABLE,  // variable: an address taken by name (mov.u64 %rd, name), or a .param/tensor-map name;
                         // value: the offset of "name+8" outside brackets
  PTX_OPERAND_FUNCTION,  // name: a function's name (call, or its address), never an .alias but the function it means;
                         // index: into PtxModule.functions, -1 when it has no body
  PTX_OPERAND_LABEL,     // index: into PtxFunction.labels
  PTX_OPERAND_ADDRESS,  // [base + value] or [base, items...]: items[0] is the base (register, variable or integer), the
                        // rest follow its comma: TMA's coordinate vector
  PTX_OPERAND_VECTOR,   // {a, b, ...}: items
  PTX_OPERAND_LIST,     // (a, b, ...): items, the argument lists of call
  PTX_OPERAND_PAIR,     // p|q: items[0], items[1]; either may be a sink
  PTX_OPERAND_SINK,     // _
  PTX_OPERAND_NAME,     // name: that of a .branchtargets (index: into PtxFunction.branch_targets), or of a
                        // .callprototype or .calltargets (index -1)
} PtxOperandKind;

typedef struct PtxOperand {
  PtxOperandKind kind;
  bool negated;  // !p of a predicate, or -x of a register or variable where PTX allows it
  bool is_f32;
  bool is_element;  // name[3] of mov, until it is resolved: value counts elements, not bytes
  int index;
  int component;
  const char *part;  // of a register of a video instruction: "b0" to "b3", "h0", "h1", "h10", "b3210", ...; else NULL
  int64_t value;
  const char *name;
  const struct PtxVariable *variable;
  const struct PtxOperand *items;
  int item_count;
} PtxOperand;

enum { PTX_MAX_MODIFIERS = 24 };

typedef struct PtxInstruction {
  const char *opcode;            // "mad"
  const char *const *modifiers;  // "lo", "s32"; "shared::cta" is one modifier
  int modifier_count;
  int guard;           // register index of @p, -1 when there is none
  bool guard_negated;  // @!p
  const PtxOperand *operands;
  int operand_count;
  int line;                     // of the PTX text
  const PtxLocation *location;  // of the source, NULL before the first .loc
} PtxInstruction;

typedef struct PtxRegister {
  const char *name;  // with its '%'
  PtxType type;
  int vector;  // 1, 2 or 4
} PtxRegister;

typedef struct PtxVariable {
  const char *name;
  PtxSpace space;
  PtxType type;
  int vector;          // 1, 2 or 4
  uint64_t count;      // elements of all array dimensions together; 1 for a scalar, 0 for an unsized extern array
  uint64_t alignment;  // bytes
  uint64_t size;       // bytes
  bool is_extern;
  bool is_managed;         // .attribute(.managed): the host reaches it by the same address
  const uint8_t *initial;  // size bytes, or NULL for zero (undefined for shared and local)
  // Addresses of other symbols inside the initializer, zero in initial.
  const struct PtxRelocation *relocations;
  int relocation_count;
  int owner;  // index of the function it is declared in, -1 at module level
  int line;
} PtxVariable;

// The bytes [offset, offset + size) of an initial value are those of (address of symbol + addend) >> shift. Nearly
// always size is 8 and shift 0; 0xff00(symbol) stores one byte, with shift 8. The symbol is a .global or .const
// variable of the module, or a function (an .alias is replaced by the function it means).
typedef struct PtxRelocation {
  uint64_t offset;
  const char *symbol;
  int64_t addend;
  bool generic;                        // written generic(symbol)
  int size;                            // 1, 4 or 8 bytes
  int shift;                           // bits
  const struct PtxVariable *variable;  // NULL: a function
  int function;                        // index into PtxModule.functions, -1 when it has no body
} PtxRelocation;

typedef struct PtxLabel {
  const char *name;
  int instruction;  // index of the instruction it stands before; instruction_count at the end
} PtxLabel;

// name: .branchtargets L0, L1, ...;  the table of a brx.idx.
typedef struct PtxBranchTargets {
  const char *name;
  const int *labels;
  int label_count;
} PtxBranchTargets;

// What a text begins with.
typedef struct PtxHeader {
  int version_major, version_minor, version_line;
  const char *target;  // "sm_90a"
  int target_line;
} PtxHeader;

typedef struct PtxFunction {
  const char *name;
  const char *readable;     // of a mangled name: "cute::copy"
  int index;                // in PtxModule.functions
  const PtxHeader *header;  // of its text
  bool is_entry;
  // No body counts: .extern, a forward declaration whose definition is a later function, or a .weak one whose place
  // another text's has taken.
  bool is_declaration;
  const PtxVariable *const *params;  // in order; space PTX_PARAM (or PTX_REG)
  int param_count;
  const PtxVariable *const *returns;
  int return_count;
  PtxRegister *registers;  // those that instructions name, in this order: nvcc declares five times as many
  int register_count;
  const PtxVariable *const *variables;  // declared in the body: shared, local, param
  int variable_count;
  PtxInstruction *instructions;
  int instruction_count;
  PtxLabel *labels;
  int label_count;
  PtxBranchTargets *branch_targets;
  int branch_targets_count;
  // Performance directives, 0 when absent.
  unsigned max_threads[3], required_threads[3], required_cluster[3];
  unsigned max_registers, min_blocks_per_sm, max_cluster_rank;
  int line;
} PtxFunction;

typedef struct PtxModule {
  const PtxHeader *const *headers;  // one a text
  int header_count;
  const char **files;  // of .file, by index; holes are NULL
  int file_count;
  const PtxVariable *const *variables;  // module level
  int variable_count;
  PtxFunction *functions;  // definitions and declarations
  int function_count;
  struct PtxArena *arena;
  struct Parser *parser;
} PtxModule;

// ---- parser.c ----

// Parses length bytes of PTX. Returns NULL and fills *error when the text is malformed. Never reads past length, and
// takes any bytes at all: the text is untrusted. Free with ptx_free.
PtxModule *ptx_parse(const char *text, size_t length, PtxError *error);

typedef struct PtxText {
  const char *bytes;
  size_t length;
} PtxText;

// The same for texts that are linked: one module, as nvlink makes it of the files of a program. Lines are numbered as
// if the texts followed each other.
PtxModule *ptx_link(const PtxText *texts, int count, PtxError *error);
// The same without the functions' bodies. ptx_parse_body adds one when it is needed; until then the text must stay.
PtxModule *ptx_parse_headers(const char *text, size_t length, PtxError *error);
// Adds a function's body to it, unless it is there. False and *error when it is malformed, now or before.
bool ptx_parse_body(PtxModule *module, int function, PtxError *error);
void ptx_free(PtxModule *module);

// ---- types ----

// True when the instruction carries the modifier ("ftz", "shared::cta").
bool ptx_has(const PtxInstruction *instruction, const char *modifier);
// The last modifier that names a type, which is the operand type of nearly every instruction.
PtxType ptx_instruction_type(const PtxInstruction *instruction);
