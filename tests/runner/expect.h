// For the programs of this folder: EXPECT ends a program whose result is wrong.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      printf("line %d: not so: %s\n", __LINE__, #condition);                                                           \
      exit(11);                                                                                                        \
    }                                                                                                                  \
  } while (0)
