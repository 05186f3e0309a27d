// What a box of the tensor holds, and where it lies in shared memory.
#include "parts.h"

// Numbers from 1 up, all of which are finite as fp16.
static uint16_t number_of(int x, int y, int z) { return (uint16_t)(1 + (z * ROWS + y) * COLUMNS + x); }

void model_tensor(uint16_t *memory) {
  const int pitch = PITCH / ELEMENT;
  for (int i = 0; i < MATRICES * ROWS * pitch; i++)
    memory[i] = i % pitch < COLUMNS ? number_of(i % pitch, i / pitch % ROWS, i / pitch / ROWS) : (uint16_t)PADDING;
}

uint16_t model_element(int x, int y, int z, uint16_t fill) {
  bool inside = x >= 0 && x < COLUMNS && y >= 0 && y < ROWS && z >= 0 && z < MATRICES;
  return inside ? number_of(x, y, z) : fill;
}

Chunk model_chunk(const Corner *at, int row, int chunk, uint16_t fill) {
  Chunk result;
  for (int e = 0; e < IN_CHUNK; e++)
    result.element[e] = model_element(at->x + chunk * IN_CHUNK + e, at->y + row, at->z, fill);
  return result;
}

// A swizzle permutes 128 bytes at a time: one row of 128 bytes, two of 64, four of 32.
int model_place(const Box *box, int row, int chunk) {
  int width = box->columns / IN_CHUNK;
  switch (box->swizzle) {
  case 128: chunk ^= row % 8; break;
  case 64: chunk ^= row / 2 % 4; break;
  case 32: chunk ^= row / 4 % 2; break;
  default: break;
  }
  return row * width + chunk;
}

int model_inside(const Box *box, const Corner *at) {
  int width = box->columns / IN_CHUNK, inside = 0;
  for (int i = 0; i < box_chunks(box); i++)
    inside += model_element(at->x + i % width * IN_CHUNK, at->y + i / width, at->z, 0) != 0;
  return inside;
}

const char *model_name(const Chunk *chunk, char name[32]) {
  int first = chunk->element[0], step = first == FILL_ZERO || first == FILL_NAN || first == PADDING ? 0 : 1;
  int place = first - 1, z = place / (ROWS * COLUMNS);
  for (int e = 1; e < IN_CHUNK; e++)
    if (chunk->element[e] != first + step * e) return "a mixture";
  if (first == FILL_ZERO) return "0";
  if (first == FILL_NAN) return "NaN";
  if (first == PADDING) return "padding";
  if (z >= MATRICES) return "no element";
  snprintf(name, 32, z ? "r%d c%d m%d" : "r%d c%d", place / COLUMNS % ROWS, place % COLUMNS, z);
  return name;
}
