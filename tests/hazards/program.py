#!/usr/bin/env python3
"""Writes a CUDA program that launches the kernels of one file of this folder, for a GPU or for another tool.

    python3 tests/hazards/program.py tma.cu > tma_program.cu
    nvcc -lineinfo -arch=sm_90a -I tests/hazards tma_program.cu -o tma_program             # wrong as they stand
    nvcc -lineinfo -arch=sm_90a -I tests/hazards -DREPAIRED tma_program.cu -o tma_repaired
    compute-sanitizer --tool racecheck ./tma_program box_address                           # one kernel, by its name

The comment "// launch" of each kernel says how it is launched; kernels.h explains it.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"int": "int", "float": "float", "double": "double", "half": "__half", "byte": "unsigned char"}


def shape(word):
    return "dim3(" + ", ".join(word.split("x")) + ")"


def argument(index, word):
    """C++ that makes an argument, as the variable argumentN."""
    buffer = re.fullmatch(r"(\w+)\[(\d+)\](?:=(\w+))?", word)
    if buffer:
        kind, count, content = buffer.groups()
        return f"{TYPES[kind]} *argument{index} = make_buffer<{TYPES[kind]}>({count}, {(content or 'ramp').upper()});"
    if word.startswith("map:"):
        _, number, size, box, *swizzle = word.split(":")
        sizes = ["{" + ", ".join(text.split("x")) + "}" for text in (size, box)]
        return (f"CUtensorMap argument{index} = make_map(argument{number}, {sizes[0]}, {sizes[1]}, "
                f"CU_TENSOR_MAP_SWIZZLE_{(swizzle or ['none'])[0].upper()});")
    if word.startswith("bytes"):
        return f"Bytes<{word[5:]}> argument{index} = make_bytes<{word[5:]}>();"
    return f"void *argument{index} = nullptr;" if word == "null" else f"int argument{index} = {word};"


def launch(kernel, text):
    """The C++ that launches a kernel, in the branch of main for its name."""
    head, _, tail = text.partition("args")
    words, arguments = head.split(), tail.split()
    options = dict(zip(words[::2], words[1::2]))
    lines = [argument(index, word) for index, word in enumerate(arguments)]
    lines.append(f"void *arguments[] = {{{', '.join(f'&argument{index}' for index in range(len(arguments)))}}};")
    shapes = ", ".join(shape(options.get(name, "1")) for name in ("grid", "block", "cluster"))
    lines.append(f"return launch((const void *){kernel}, {shapes}, {options.get('shared', 0)}, arguments);")
    return "\n".join([f'  if (!strcmp(words[1], "{kernel}")) {{'] + ["    " + line for line in lines] + ["  }"])


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    with open(os.path.join(HERE, arguments[0]), encoding="utf-8") as file:
        launches = re.findall(r"^// launch (\w+): (.*)", file.read(), re.MULTILINE)
    print(f'#include "{os.path.basename(arguments[0])}"\n#include "program.h"\n')
    print("int main(int count, char **words) {\n  if (count != 2) return usage();")
    print("\n".join(launch(kernel, text) for kernel, text in launches))
    print("  return usage();\n}")


if __name__ == "__main__":
    main(sys.argv[1:])
