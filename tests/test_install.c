// The emulator's library, as `make install` hands it to other programs.
#include <criterion/criterion.h>

#include "support/sanitized.h"
#include "support/scratch.h"

TestSuite(install, .init = scratch_enter, .fini = scratch_leave);

// What the library exports and emulator.h does not declare.
#define OTHER_NAMES                                                                                                    \
  "nm -g --defined-only \"$EMULATOR_LIBRARY\" | awk 'NF == 3 { print $3 }' >names; [ -s names ] && "                   \
  "while read name; do grep -qw $name \"$ROOT/common/emulator/emulator.h\" || echo $name; done <names"

Test(install, the_library_exports_its_interface_alone) {
  if (SANITIZED) cr_skip_test("a library with a sanitizer in it is not installed");
  cr_expect_eq(scratch_run(OTHER_NAMES), 0);
  cr_expect_str_empty(scratch_output);
}

// The emulator has functions of these names, too.
Test(install, a_program_may_use_any_other_name) {
  if (SANITIZED) cr_skip_test("a library with a sanitizer in it is not installed");
  scratch_write("program.c", "#include \"emulator.h\"\n"
                             "int expect = 1, intern = 2, hazard_stop = 3, execute_ld = 4;\n"
                             "int lex(void) { return expect + intern + hazard_stop + execute_ld; }\n"
                             "int main(void) {\n"
                             "  Emulator *emulator = emulator_open(&(EmulatorOptions){0});\n"
                             "  EmulatorError error;\n"
                             "  const char ptx[] = \".version 8.0\\n.target sm_90a\\n.address_size 64\\n\"\n"
                             "                     \".visible .entry k() { ret; }\\n\";\n"
                             "  int loaded = emulator_load(emulator, ptx, sizeof ptx - 1, &error) != 0;\n"
                             "  emulator_close(emulator);\n"
                             "  return loaded ? lex() : 1;\n"
                             "}\n");
  cr_expect_eq(scratch_run("cc -I\"$ROOT/common/emulator\" program.c \"$EMULATOR_LIBRARY\" -lm -pthread -o program"), 0,
               "%s", scratch_output);
  cr_expect_eq(scratch_run("./program"), 10, "%s", scratch_output);
}
