// gnuplot writes each text as <g transform="translate(X,Y)" ... font-size="18.00" text-anchor="end"> and, inside, one
// <tspan> for each run of one font.
#include "svg_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXTS = 1000 };
static const double LETTER = 0.56;  // mean width of a letter, in font sizes
static const double BOLD = 1.1;     // how much wider a bold one is

// The attribute's value in an element's first tag; NULL when there is none.
static const char *attribute(const char *element, const char *name) {
  const char *end = strchr(element, '>'), *found = strstr(element, name);
  return found && found < end ? found + strlen(name) : NULL;
}

// Appends the characters between tags, up to end; &lt; and the like count as one.
static void gather(SvgText *text, const char *from, const char *end) {
  size_t length = 0;
  bool inside = false;
  for (; from < end; from++) {
    if (*from == '<') inside = true;
    if (!inside && *from != '\n' && *from != '\t' && length + 1 < sizeof text->text) text->text[length++] = *from;
    if (*from == '>') inside = false;
  }
  text->text[length] = 0;
}

static void measure(SvgText *text, const char *element, const char *end) {
  const char *size_text = attribute(element, "font-size=\""), *anchor = attribute(element, "text-anchor=\"");
  double size = size_text ? atof(size_text) : 15;
  const char *bold = strstr(element, "font-weight=\"bold\"");
  double width = size * LETTER * (double)strlen(text->text) * (bold && bold < end ? BOLD : 1);
  text->left = text->x - (!anchor || *anchor == 's' ? 0 : *anchor == 'm' ? width / 2 : width);
  text->right = text->left + width;
  text->top = text->y - 0.72 * size;
  text->bottom = text->y + 0.02 * size;
}

int svg_texts(const char *svg, SvgText *texts, int limit) {
  static const char MARK[] = "<g transform=\"translate(";
  int count = 0;
  for (const char *at = svg; (at = strstr(at, MARK)) && count < limit; at += sizeof MARK) {
    const char *end = strstr(at, "</text>"), *tag_end = strchr(at, '>');
    if (!end) break;
    const char *text = strstr(at, "<text"), *turned = strstr(at, "rotate(");
    if (!text || text > end || (turned && turned < tag_end)) continue;
    SvgText *found = &texts[count];
    *found = (SvgText){.x = 0};
    if (sscanf(at + sizeof MARK - 1, "%lf,%lf", &found->x, &found->y) != 2) continue;
    gather(found, text, end);
    measure(found, at, end);
    count += found->text[strspn(found->text, " ")] != 0;
  }
  return count;
}

const SvgText *svg_find_text(const char *svg, const char *text) {
  static SvgText texts[MAX_TEXTS];
  int count = svg_texts(svg, texts, MAX_TEXTS);
  for (int i = 0; i < count; i++)
    if (!strcmp(texts[i].text, text)) return &texts[i];
  return NULL;
}

int svg_count_text(const char *svg, const char *text) {
  static SvgText texts[MAX_TEXTS];
  int count = svg_texts(svg, texts, MAX_TEXTS), found = 0;
  for (int i = 0; i < count; i++) found += !strcmp(texts[i].text, text);
  return found;
}

// A text with a box is drawn twice in one place.
static bool overlap(const SvgText *a, const SvgText *b) {
  if (!strcmp(a->text, b->text) && a->x == b->x && a->y == b->y) return false;
  return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

const char *svg_overlap(const char *svg) {
  static SvgText texts[MAX_TEXTS];
  static char message[500];
  int count = svg_texts(svg, texts, MAX_TEXTS);
  double width = 0, height = 0;
  const char *box = strstr(svg, "viewBox=\"0 0 ");
  if (box) sscanf(box + strlen("viewBox=\"0 0 "), "%lf %lf", &width, &height);
  for (int i = 0; i < count; i++) {
    const SvgText *a = &texts[i];
    bool outside = a->left < 0 || a->right > width || a->top < 0 || a->bottom > height;
    if (outside) snprintf(message, sizeof message, "'%.100s' reaches out of the picture", a->text);
    if (outside) return message;
    for (int j = 0; j < i; j++) {
      if (!overlap(a, &texts[j])) continue;
      snprintf(message, sizeof message, "'%.100s' and '%.100s' overlap", texts[j].text, a->text);
      return message;
    }
  }
  return NULL;
}
