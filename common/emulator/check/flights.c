// Loads under way: see flights.h.
#include "flights.h"

#include <stdlib.h>
#include <string.h>

#include "../host/host_memory.h"
#include "clocks.h"

typedef struct Flight {
  const LateLoad *load;
  Mask lanes;
  uint32_t clock[LANES];  // of the lanes, then
} Flight;

enum { MOST_FLIGHTS = 64 };  // a scoreboard has far fewer: what began before the last so many is over

typedef struct Flights {
  int count;
  Flight flights[MOST_FLIGHTS];  // the oldest first
} Flights;

static void end_first(Flights *flights, int count) {
  flights->count -= count;
  memmove(flights->flights, flights->flights + count, (size_t)flights->count * sizeof(Flight));
}

void flights_begin(CheckWarp *warp, const LateLoad *load, Mask lanes) {
  if (!warp->flights) warp->flights = host_allocate(1, sizeof *warp->flights);
  Flights *flights = warp->flights;
  if (flights->count == MOST_FLIGHTS) end_first(flights, 1);
  Flight *flight = &flights->flights[flights->count++];
  flight->load = load;
  flight->lanes = lanes;
  for (int lane = 0; lane < LANES; lane++) flight->clock[lane] = warp->clocks[lane].own;
}

void flights_end(CheckWarp *warp, const LateLoad *load) {
  for (int i = warp->flights ? warp->flights->count : 0; i-- > 0;)
    if (warp->flights->flights[i].load == load) {
      end_first(warp->flights, i + 1);
      return;
    }
}

void flights_end_all(CheckWarp *warp) {
  if (warp->flights) warp->flights->count = 0;
}

static bool crosses(const LateLoad *load, uint32_t pc) {
  for (int i = 0; i < load->handover_count; i++)
    if (load->handovers[i] == pc) return true;
  return false;
}

uint32_t flights_ended(const CheckWarp *warp, int lane) {
  const Flights *flights = warp->flights;
  for (int i = 0; flights && i < flights->count; i++) {
    const Flight *flight = &flights->flights[i];
    if (flight->lanes >> lane & 1 && crosses(flight->load, *warp->pc - 1)) return flight->clock[lane] - 1;
  }
  return warp->clocks[lane].own;
}

void flights_free(Flights *flights) { free(flights); }
