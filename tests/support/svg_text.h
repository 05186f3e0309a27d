// The text of an SVG that gnuplot drew: what stands where.
#pragma once

typedef struct SvgText {
  char text[160];
  double x, y;                      // of the baseline, where the anchor is, in the picture's units
  double left, right, top, bottom;  // of the letters, about: a font has its own widths
} SvgText;

// The picture's text elements in their order, at most limit; returns how many. Turned ones are left out.
int svg_texts(const char *svg, SvgText *texts, int limit);
// The first element that is exactly text, until the next call; NULL when there is none.
const SvgText *svg_find_text(const char *svg, const char *text);
// How many elements are exactly text.
int svg_count_text(const char *svg, const char *text);
// The first element that lies over another one or outside of the picture, described in one line that lives until the
// next call; NULL when there is none.
const char *svg_overlap(const char *svg);
