// Functions whose control flow depends on their argument, so that the lanes of a warp part and meet again. The same text is
// compiled by nvcc for the emulator (scheduling.cu) and by the C compiler for the test (tests/test_scheduling.c): both must
// compute the same.
#pragma once

#ifdef __CUDACC__
#define FUNCTION static __device__
#define OWN_FUNCTION static __device__ __noinline__
#else
#define FUNCTION static
#define OWN_FUNCTION static
#endif

#define DIVERGENT_FUNCTIONS(DO)                                                                                        \
  DO(nested_ifs)                                                                                                       \
  DO(leave_loops) DO(switches) DO(early_returns) DO(collatz) DO(greatest_divisor) DO(fall_through) DO(jump_about)      \
      DO(ackermann) DO(is_even) DO(sorted) DO(pointers) DO(two_callers) DO(short_circuit)

FUNCTION int nested_ifs(int x) {
  int y = 0;
  if (x % 2) {
    if (x % 3 == 0)
      y += 5;
    else if (x % 3 == 1)
      y -= x;
    else {
      y = x * x;
      if (y > 500) y -= 500;
    }
  } else {
    y = -x;
    if (x % 4) {
      if (x % 5 == 0) y *= 7;
    } else
      y += 11;
  }
  if (x > 60) y ^= 0x55;
  return y;
}

FUNCTION int leave_loops(int x) {
  int sum = 0;
  for (int i = 0; i < 20; i++) {
    if (i == x % 7) continue;
    if (i > x % 19) break;
    for (int j = i; j < 12; j++) {
      if ((i * j + x) % 5 == 0) continue;
      sum += i * j - x;
      if (sum % 11 == 3) break;
      if (sum > 4000) goto out;
    }
    sum++;
  }
  sum *= 2;
out:
  return sum;
}

FUNCTION int switches(int x) {
  int state = x % 6, steps = 0;
  while (steps < 40) {
    steps++;
    switch (state) {
    case 0: state = x & 1 ? 3 : 4; break;
    case 1:
      x += 3;
      state = 5;
      break;
    case 2: return steps * 100 + x;
    case 3:
      x = x * 5 % 97;
      state = x % 3;
      break;
    case 4:
      x -= 7;
      state = x < 0 ? 2 : 1;
      break;
    default: state = (x ^ steps) & 3; break;
    }
  }
  return -x;
}

FUNCTION int early_returns(int x) {
  if (x < 10) return x * 1000;
  for (int i = 0; i < x; i++) {
    if (i * i == x) return i;
    if (i * i > x) {
      if (x % 3 == 0) return -i;
      break;
    }
  }
  if (x % 2 == 0) return 7 * x;
  return x;
}

FUNCTION int collatz(int x) {
  int steps = 0;
  unsigned n = (unsigned)x + 1;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    steps++;
  }
  return steps;
}

FUNCTION int greatest_divisor(int x) {
  int a = x + 1, b = 5040;
  do {
    int rest = a % b;
    a = b;
    b = rest;
  } while (b);
  return a;
}

FUNCTION int fall_through(int x) {  // Duff's device
  int n = (x % 23 + 7) / 8, sum = 0;
  switch (x % 8) {
  case 0:
    do {
      sum += 1;
      // fall through
    case 7: sum = sum * 3 + 7;  // fall through
    case 6: sum ^= x;           // fall through
    case 5: sum += 50;          // fall through
    case 4: sum -= 4;           // fall through
    case 3: sum *= 5;           // fall through
    case 2: sum += x / 2;       // fall through
    case 1: sum &= 0xffffff;
    } while (--n > 0);
  }
  return sum;
}

FUNCTION int jump_about(int x) {  // a loop with two ways in
  int n = 0;
  if (x % 3 == 0) goto odd;
even:
  x /= 2;
  n += 1;
  if (x < 2) return n;
odd:
  n += 100;
  if (x % 5 == 0) {
    x -= 3;
    goto even;
  }
  x -= 1;
  if (x > 1) goto even;
  return n + x;
}

OWN_FUNCTION int ackermann_of(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann_of(m - 1, 1);
  return ackermann_of(m - 1, ackermann_of(m, n - 1));
}

FUNCTION int ackermann(int x) { return ackermann_of(x % 3, x % 4); }

OWN_FUNCTION int is_odd_number(int x);
OWN_FUNCTION int is_even_number(int x) { return x == 0 ? 1 : 2 * is_odd_number(x - 1); }
OWN_FUNCTION int is_odd_number(int x) { return x == 0 ? 0 : is_even_number(x - 1) + 1; }

FUNCTION int is_even(int x) { return is_even_number(x % 13); }

OWN_FUNCTION void quicksort(int *array, int count) {
  if (count < 2) return;
  int pivot = array[count / 2], left = 0, right = count - 1;
  while (left <= right) {
    while (array[left] < pivot) left++;
    while (array[right] > pivot) right--;
    if (left > right) break;
    int other = array[left];
    array[left++] = array[right];
    array[right--] = other;
  }
  quicksort(array, right + 1);
  quicksort(array + left, count - left);
}

FUNCTION int sorted(int x) {
  int array[16], hash = 0;
  for (int i = 0; i < 16; i++) array[i] = (x * (i + 3) * 37 + i * i * 11) % 101;
  quicksort(array, x % 16 + 1);
  for (int i = 0; i < 16; i++) hash = hash * 31 % 100003 + array[i];
  return hash;
}

typedef int Operation(int);
OWN_FUNCTION int twice(int x) { return 2 * x; }
OWN_FUNCTION int thrice(int x) { return 3 * x - 1; }
OWN_FUNCTION int halved(int x) { return x / 2; }

FUNCTION int pointers(int x) {
  Operation *table[3];
  table[x % 3] = twice;
  table[(x + 1) % 3] = thrice;
  table[(x + 2) % 3] = halved;
  for (int i = 0; i < 10; i++) x = table[x % 3](x) % 5000;
  return x;
}

// Lanes that call one function from two places run it together, and must find their own way back.
OWN_FUNCTION int count_down(int x, int step) {
  int steps = 0;
  for (; x > 0; x -= step) steps++;
  return steps;
}

FUNCTION int two_callers(int x) {
  if (x % 2) return 1000 + count_down(x, 2);
  int steps = count_down(2 * x, 3);
  return steps % 3 ? steps : -count_down(steps, 1);
}

FUNCTION int short_circuit(int x) {
  int calls = 0;
  for (int i = 0; i < 8; i++)
    if ((x >> i & 1 && ++calls % 3) || (x % (i + 2) == 0 && (calls += 10) > 25) || !(calls & 4)) calls += i;
  return calls;
}
