// Reads the few facts of an ELF file that decide whether a program can run on the stand-ins.
#include "elf.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Image {
  const unsigned char *bytes;
  size_t size;
} Image;

// The bytes [offset, offset + size) of the file, or NULL.
static const void *bytes_at(const Image *image, uint64_t offset, uint64_t size) {
  return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

// A string at an offset of a string table, or "".
static const char *text(const Image *image, uint64_t table, uint64_t table_size, uint64_t offset) {
  const char *start = bytes_at(image, table, table_size);
  if (!start || offset >= table_size || !memchr(start + offset, 0, table_size - offset)) return "";
  return start + offset;
}

static const Elf64_Shdr *section(const Image *image, const Elf64_Ehdr *head, unsigned index) {
  return index < head->e_shnum
             ? bytes_at(image, head->e_shoff + (uint64_t)index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr))
             : NULL;
}

static void read_dynamic(const Image *image, const Elf64_Shdr *dynamic, const Elf64_Shdr *strings, ElfFacts *facts) {
  const Elf64_Dyn *entries = bytes_at(image, dynamic->sh_offset, dynamic->sh_size);
  for (size_t i = 0; entries && i < dynamic->sh_size / sizeof *entries && entries[i].d_tag != DT_NULL; i++)
    if (entries[i].d_tag == DT_NEEDED && facts->needed_count < ELF_NEEDED)
      facts->needed[facts->needed_count++] =
          strdup(text(image, strings->sh_offset, strings->sh_size, entries[i].d_un.d_val));
}

static void read_symbols(const Image *image, const Elf64_Shdr *symbols, const Elf64_Shdr *strings, ElfFacts *facts) {
  const Elf64_Sym *items = bytes_at(image, symbols->sh_offset, symbols->sh_size);
  for (size_t i = 0; items && i < symbols->sh_size / sizeof *items; i++)
    if (items[i].st_shndx == SHN_UNDEF &&
        !strcmp(text(image, strings->sh_offset, strings->sh_size, items[i].st_name), "__cudaRegisterFatBinary"))
      facts->imports_runtime = true;
}

static void read_sections(const Image *image, const Elf64_Ehdr *head, ElfFacts *facts) {
  const Elf64_Shdr *names = section(image, head, head->e_shstrndx);
  for (unsigned i = 0; names && i < head->e_shnum; i++) {
    const Elf64_Shdr *s = section(image, head, i);
    const Elf64_Shdr *strings = s ? section(image, head, s->sh_link) : NULL;
    if (!s || !strings) continue;
    if (s->sh_type == SHT_DYNAMIC) read_dynamic(image, s, strings, facts);
    if (s->sh_type == SHT_DYNSYM) read_symbols(image, s, strings, facts);
    if (!strcmp(text(image, names->sh_offset, names->sh_size, s->sh_name), ".nvFatBinSegment"))
      facts->has_kernels = true;
  }
}

bool elf_read(const char *path, ElfFacts *facts) {
  struct stat status;
  *facts = (ElfFacts){.is_elf = false};
  int file = open(path, O_RDONLY);
  if (file < 0) return false;
  if (fstat(file, &status) || status.st_size == 0) {
    close(file);
    return false;
  }
  Image image = {.size = (size_t)status.st_size};
  void *bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (bytes == MAP_FAILED) return false;
  image.bytes = bytes;
  const Elf64_Ehdr *head = bytes_at(&image, 0, sizeof *head);
  facts->is_elf = head && !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64;
  if (facts->is_elf) read_sections(&image, head, facts);
  munmap(bytes, image.size);
  return true;
}

bool elf_needs(const ElfFacts *facts, const char *prefix) {
  for (int i = 0; i < facts->needed_count; i++)
    if (!strncmp(facts->needed[i], prefix, strlen(prefix))) return true;
  return false;
}
