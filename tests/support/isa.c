#include "isa.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "ptx_files.h"

enum { LINE_SIZE = 1000, MOST_ROWS = 400 };

// ---- kernels ----

const char isa_module[] = ".version 9.0\n.target sm_90a\n.address_size 64\n"
                          ".const .align 16 .b8 constants[64];\n"
                          ".func (.param .b32 y) twice(.param .b32 x) {\n"
                          ".reg .b32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, %r; st.param.b32 [y], %r; ret;\n}\n";

static const char registers[] =
    ".reg .pred %p<9>, %first, %never; .reg .b8 %y<9>; .reg .b16 %h<9>, %three; .reg .b32 %r<13>, %z, %one, %m;\n"
    ".reg .b64 %d<9>; .reg .b128 %q<3>; .reg .f32 %f<9>; .reg .f64 %g<5>;\n"
    ".reg .b32 %S, %B, %T, %C; .reg .b64 %G, %K, %L, %A, %E, %F, %I, %M, %N;\n"
    ".shared .align 1024 .b8 tile[4096]; .shared .align 8 .b8 bar[64]; .local .align 16 .b8 own[64];\n";

static const char addresses[] =
    "ld.param.b64 %G, [buffer]; mov.u64 %K, constants; mov.u64 %L, own; mov.u64 %M, map; cvta.param.u64 %M, %M;\n"
    "mov.u32 %S, tile; cvt.u64.u32 %A, %S; cvta.shared.u64 %A, %A;\n"
    "mov.u32 %B, bar; cvt.u64.u32 %F, %B; cvta.shared.u64 %F, %F;\n"
    "mapa.shared::cluster.u32 %T, %S, 1; cvt.u64.u32 %E, %T; cvta.shared::cluster.u64 %E, %E;\n"
    "mapa.shared::cluster.u32 %C, %B, 1; cvt.u64.u32 %I, %C; cvta.shared::cluster.u64 %I, %I;\n"
    "cvt.u64.u32 %N, %S; shr.u64 %N, %N, 4; or.b64 %N, %N, 0x1000080000;\n";

static const char preparations[] =
    "mov.u32 %z, 0; mov.u32 %one, 1; mov.u32 %m, -1; mov.u16 %three, 3;\n"
    "mov.u32 %r0, %tid.x; setp.eq.u32 %first, %r0, 0; setp.gt.u32 %never, %r0, 1000;\n"
    "@%first mbarrier.init.shared.b64 [%B], 200; @%first mbarrier.init.shared.b64 [%B+16], 128;\n"
    "barrier.cluster.arrive; barrier.cluster.wait;\n";

void isa_kernel(char *text, size_t size, const char *name, const char *probe) {
  int length = snprintf(text, size,
                        ".entry %s(.param .b64 buffer, .param .align 64 .b8 map[128]) .reqntid 128 {\n%s%s%s%s\n"
                        "barrier.cluster.arrive; barrier.cluster.wait;\nret;\n}\n",
                        name, registers, addresses, preparations, probe);
  cr_assert(length > 0 && (size_t)length < size, "%s is too long", probe);
}

// ---- probes ----

// The alternative with that number of a group's text "a|b|c", of which *count is set.
static const char *alternative(const char *group, const char *end, int number, int *length) {
  for (; number; number--) group = memchr(group, '|', (size_t)(end - group)) + 1;
  const char *bar = memchr(group, '|', (size_t)(end - group));
  *length = (int)((bar ? bar : end) - group);
  return group;
}

static int alternatives(const char *group, const char *end) {
  int count = 1;
  while (group < end) count += *group++ == '|';
  return count;
}

// Copies text with the group at `open` replaced by its alternative; with a label, "<1:", all groups of that label.
static void choose(char *to, const char *text, const char *open, char label, int number) {
  while (*text) {
    bool chosen = *text == '<' && (text == open || (label && text[1] == label && text[2] == ':'));
    if (!chosen) {
      *to++ = *text++;
      continue;
    }
    int length;
    const char *end = strchr(text, '>'), *from = alternative(text + (label ? 3 : 1), end, number, &length);
    memcpy(to, from, (size_t)length);
    to += length;
    text = end + 1;
  }
  *to = 0;
}

static void expand(ProbeLine *line, const char *text) {
  const char *open = strchr(text, '<');
  if (!open) {
    line->probes = realloc(line->probes, (size_t)(line->count + 1) * sizeof *line->probes);
    line->probes[line->count++] = strdup(text);
    return;
  }
  char label = open[1] >= '1' && open[1] <= '9' && open[2] == ':' ? open[1] : 0, one[LINE_SIZE];
  int count = alternatives(open, strchr(open, '>'));
  for (int i = 0; i < count; i++) {
    choose(one, text, open, label, i);
    expand(line, one);
  }
}

static void add_line(IsaRow *row, const char *text) {
  row->lines = realloc(row->lines, (size_t)(row->count + 1) * sizeof *row->lines);
  ProbeLine *line = &row->lines[row->count++];
  bool foreign = !strncmp(text, "x ", 2);
  *line = (ProbeLine){.text = text + 2 * foreign, .foreign = foreign};
  cr_assert(strlen(text) < LINE_SIZE);
  expand(line, line->text);
}

const IsaRow *isa_rows(int *count) {
  static IsaRow rows[MOST_ROWS];
  static int row_count;
  *count = row_count;
  if (row_count) return rows;
  char path[400];
  snprintf(path, sizeof path, "%s/tests/isa/instructions.txt", root_path());
  const char *chapter = "";
  for (char *line = strtok(read_text(path).bytes, "\n"); line; line = strtok(NULL, "\n")) {
    if (!strncmp(line, "== ", 3)) {
      chapter = line + 3;
    } else if (!strncmp(line, "= ", 2)) {
      char *name = strchr(line + 2, ' ');
      cr_assert(name && row_count < MOST_ROWS, "%s", line);
      *name++ = 0;
      rows[row_count++] = (IsaRow){.chapter = chapter, .section = line + 2, .name = name};
    } else if (*line != '#') {
      cr_assert(row_count, "%s", line);
      add_line(&rows[row_count - 1], line);
    }
  }
  *count = row_count;
  return rows;
}

// ---- forms ----

// The length of a word, in which an alternative may contain a space.
static size_t word_length(const char *text) {
  size_t length = 0;
  for (bool inside = false; text[length] && (inside || !strchr(" ;", text[length])); length++)
    inside = text[length] == '<' || (inside && text[length] != '>');
  return length;
}

// Whether a word begins with one of the row's names, or with the opcode of one.
static bool is_about(const IsaRow *row, const char *word, bool opcode) {
  if (*word == '<') word++;
  for (const char *name = row->name; name; name = strchr(name, ',')) {
    name += strspn(name, ", ");
    size_t length = strcspn(name, opcode ? ".," : ",");
    if (!strncmp(word, name, length) && strchr(".<| ;", word[length])) return true;
  }
  return false;
}

// NULL when there is none.
static const char *find_word(const IsaRow *row, const char *text, bool opcode) {
  while (*text && !is_about(row, text, opcode)) text += word_length(text), text += strspn(text, " ;");
  return *text ? text : NULL;
}

const char *isa_form(const IsaRow *row, const char *text) {
  static char form[LINE_SIZE];
  const char *word = find_word(row, text, false);
  if (!word) word = find_word(row, text, true);
  if (!word) word = text;
  snprintf(form, sizeof form, "%.*s", (int)(*row->name == '%' ? strcspn(text, ";") : word_length(word)),
           *row->name == '%' ? text : word);
  return form;
}
