// A program that calls a library with kernels of its own.
#include <stdio.h>

int start_library(void);

int main(void) {
  printf("the library says %d\n", start_library());
  return 0;
}
