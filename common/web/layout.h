// Where things lie, as the emulator has it, for a page that draws it. The program's name is "layout", and it prints
// JSON:
//
//   layout wavefronts ADDRESS...         {"wavefronts": n}: in how many shared memory serves these lanes, of 16 bytes
//   layout descriptor BITS MAJOR ROWS K  what a matrix descriptor says: {"start", "leading", "stride", "swizzle" in
//                                        bytes, "base_offset", "fault": a sentence or null, "chunks": the address of
//                                        each 16 bytes}. MAJOR is k or mn. Chunks go row by row, and along a row by k
//                                        (K-major); or by k, and for each by rows (MN-major).
//   layout accumulator N                 {"places": [row, column of D's element in lane 0's register 0, then in its
//                                        register 1, ...]} of a warp, for D with N columns of fp32
#pragma once

// The exit code: 0, or 2 when there is no such question.
int layout_run(int argc, char **argv);
