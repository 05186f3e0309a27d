"""A copy of the repository to change and build, below build/course/: symbolic links, except for what is changed."""
import filecmp
import glob
import os
import re
import shlex
import shutil
import subprocess

SETTINGS = ["flags", "members", "nvcc-flags"]

# A kernel from its head to its last brace, or a macro that makes one.
KERNEL = re.compile(r'^(?:extern "C" __global__ void (?:__launch_bounds__\(.*\)\s+)?(\w+)\([^{}]*'
                    r'\{(?:.*\}|.*(?:\n.*)*?\n\})|WITH_LSE\((\w+),.*\))$', re.MULTILINE)


def launched(name, names, runs):
    """Whether a kernel is for one of the runs, by the words of its name: attention_128_causal."""
    def fits(options):
        wide, causal = "--head-dim=128" in options, "--causal" in options
        return (("_64" if wide else "_128") not in name and (causal or "_causal" not in name) and
                not (causal and f"{name}_causal" in names) and ("_lse" not in name or "--lse" in options))
    return any(fits(options) for options in runs)


def number_of(stage):
    """"02b" of "02b-mma-registers"."""
    return stage.split("-")[0]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def make(arguments, folder="."):
    """Runs make as its own process: with the variables, but not the flags, of a make that runs this program.
    WERROR is left out, because a hole or a mistake may cause a compiler warning."""
    variables = os.environ.get("MAKEFLAGS", "").partition(" -- ")[2]
    variables = re.sub(r"\bWERROR=\S*", "", variables)
    environment = dict(os.environ, MAKEFLAGS=f"-- {variables}" if variables else "")
    for name in ("MAKELEVEL", "WERROR"):
        environment.pop(name, None)
    return subprocess.run(["make", "-s", *arguments], cwd=folder, env=environment, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


class Workshop:
    """build/course/NAME, a copy in which `stage` can be built with other files in the place of some."""

    def __init__(self, name, stage):
        self.folder = os.path.join("build", "course", name)
        self.stage = stage
        self.program = os.path.join(self.folder, f"stage-{number_of(stage)}")
        self.root = os.getcwd()
        self.changed = []  # files that may differ from the repository's
        self.ptx = None  # run by the stage's own program, when only its kernels have been built
        self.runs = []  # the options of all its runs, then
        # Then: files with kernels, all kernels, those in the PTX.
        self.texts, self.names, self.compiled = {}, set(), set()
        self.typed = None  # the command that builds it again
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "build"))
        for entry in ("Makefile", "common", "stages", "plots"):
            self._link(entry)
        if os.path.exists("build/cuda"):
            self._link("build/cuda")
        for entry in SETTINGS:  # not links: a change to the flags must not be written to the repository's own
            if os.path.exists(os.path.join("build", entry)):
                shutil.copy2(os.path.join("build", entry), os.path.join(self.folder, "build", entry))

    def _link(self, path):
        os.symlink(os.path.join(self.root, path), os.path.join(self.folder, path))

    def _open(self, folder):
        """Makes a linked folder, and those above it, folders of its own, whose entries are links."""
        if not folder:
            return
        self._open(os.path.dirname(folder))
        here = os.path.join(self.folder, folder)
        if os.path.islink(here):
            os.unlink(here)
            os.mkdir(here)
            for entry in os.listdir(folder):
                self._link(os.path.join(folder, entry))

    def own(self, path):
        """Makes one file a copy, so that it can be changed; what was made from it will be made again."""
        if path in self.changed:
            return
        self.changed.append(path)
        self._open(os.path.dirname(path))
        if path.startswith(os.path.join("stages", "")):  # "../13-decode/merge.h" leads out of a link to the repository
            for folder in os.listdir("stages"):
                self._open(os.path.join("stages", folder))
        here = os.path.join(self.folder, path)
        os.unlink(here)
        shutil.copy(path, here)

    def _link_objects(self):
        """What is made already and stays as it is. The folders are its own: what it makes is not the repository's."""
        made = [os.path.join(folder, file) for folder, _, files in os.walk("build/common") for file in files]
        if not any(path.startswith("common/") and path.endswith(".c") for path in self.changed):
            made.append("build/libhopper.a")
        for path in made:
            here = os.path.join(self.folder, path)
            if path[len("build/"):-1] + "c" in self.changed or os.path.lexists(here):
                continue
            os.makedirs(os.path.dirname(here), exist_ok=True)
            if path.endswith(".d"):  # a compiler writes into the file that a link leads to
                shutil.copy2(path, here)
            else:
                self._link(path)

    def replace(self, path, other):
        """Lets another file stand in the place of `path`."""
        self.own(path)
        os.unlink(os.path.join(self.folder, path))
        os.symlink(os.path.abspath(other), os.path.join(self.folder, path))

    def write(self, path, text):
        """Lets `path` have this text."""
        self.own(path)
        here = os.path.join(self.folder, path)
        if os.path.islink(here):  # the user's own file
            os.unlink(here)
        with open(here, "w", encoding="utf-8") as file:
            file.write(text)

    def add_stage(self, folder):
        """Makes a folder of the user's own the workshop's stage: one more than the repository has."""
        self._open("stages")
        os.symlink(os.path.abspath(folder), os.path.join(self.folder, "stages", self.stage))

    def change(self, change):
        for path in change.files:
            self.own(path)
        change.apply(self.folder)

    def _concerns_the_host(self):
        """Whether a file differs that more than the kernel is made from: a .c file, or a header that one includes."""
        included = "".join(read(path) for path in glob.glob(f"build/stages/{self.stage}/*.d"))
        return any(not path.endswith((".cu", ".h")) or f"/{os.path.basename(path)}" in included for path in self.changed
                   if not filecmp.cmp(os.path.join(self.folder, path), path, shallow=False))

    def _read_kernels(self):
        """The text of each file that the stage's PTX is made from and that has kernels, and the names of those kernels.
        Without any where names say nothing of head dimensions."""
        with open(os.path.join("build", "kernels", f"{self.stage}.ptx.d"), encoding="utf-8") as file:
            made_from = {os.path.normpath(word) for word in file.read().split() if re.match(r"stages/.*[^:]$", word)}
        self.own(f"stages/{self.stage}/kernel.cu")
        texts = {path: read(os.path.join(self.folder, path)) for path in made_from}
        self.names = {match[1] or match[2] for text in texts.values() for match in KERNEL.finditer(text)}
        if not any("HEAD_DIM" in text for text in texts.values()):
            self.names = set()  # a number in a name is something else
        self.texts = {path: text for path, text in texts.items() if self.names and KERNEL.search(text)}

    def _compile_for(self, runs):
        """Makes the PTX of the kernels that these runs launch: most of the time goes into compiling them. The lines of
        the others are emptied, but for #line. The same commands as in common/build/toolchain.mk, without make."""
        self.compiled = {name for name in self.names if launched(name, self.names, runs)}
        for path, text in self.texts.items():
            self.write(path, KERNEL.sub(lambda match: match[0] if (match[1] or match[2]) in self.compiled else
                                        "\n".join(re.findall(r"^(#line .*|)(?:.*)$", match[0], re.MULTILINE)), text))
        kernel, ptx = f"stages/{self.stage}/kernel.cu", f"build/kernels/{self.stage}.ptx"
        os.makedirs(os.path.join(self.folder, "build", "kernels"), exist_ok=True)
        self.typed = (f"cd {self.folder} && {read('build/nvcc-flags').strip()} -ptx {kernel} -o {ptx}.whole && "
                      f"awk -f common/build/relative.awk {kernel} {ptx}.whole {ptx}.whole >{ptx}")
        done = subprocess.run(self.typed, shell=True, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return done.stdout, done.returncode == 0

    def build(self, allow="", runs=None, at_first=None):
        """What the build says, and whether it can run now. `allow`: what ptxas may do (stage.mk). With the options of
        its `runs` only the PTX of their kernels is made, if nothing else has changed: the stage's own program runs it
        on the emulator alike. With at_first=1 it begins with the kernel of the first run; when another one is run, all
        follow."""
        if runs and not self._concerns_the_host():
            self.runs = runs
            self.ptx = self.kernels()
            self.program = f"stage-{number_of(self.stage)}"
            return self.build_kernels(runs[:at_first])
        arguments = [f"stage-{number_of(self.stage)}", *([f"ALLOW_{self.stage}={allow}"] if allow else [])]
        self.typed = shlex.join(["make", "-C", self.folder, *arguments])
        self._link_objects()
        done = make(arguments, self.folder)
        unwanted = r"  [A-Z]+ |make(\[\d+\])?: |  For the author of a stage"
        lines = [line for line in done.stdout.splitlines() if not re.match(unwanted, line)]
        return "\n".join(lines).replace("build/kernels/", f"{self.folder}/build/kernels/"), done.returncode == 0

    def build_kernels(self, runs):
        """Makes only the PTX of the kernels that these runs launch: what nvcc says, and whether it is there now."""
        self._read_kernels()
        return self._compile_for(runs)

    def kernels(self):
        """The PTX that its kernels were compiled to."""
        return os.path.join(self.folder, "build", "kernels", f"{self.stage}.ptx")

    def command(self, options):
        """What a user types to run it."""
        ptx = f"--ptx={self.ptx} " if self.ptx else ""
        program = self.program if "/" in self.program else f"./{self.program}"
        return f"{program} --device=emulator {ptx}{options}".rstrip()

    def run(self, options):
        """What the program prints with these options on the emulator, and its exit code."""
        if self.ptx and any(launched(name, self.names, [" ".join(options)]) for name in self.names - self.compiled):
            text, built = self._compile_for([*self.runs, " ".join(options)])
            if not built:
                return text, 2
        return run(self.program, ["--device=emulator", *([f"--ptx={self.ptx}"] if self.ptx else []), *options])


def run(program, options):
    done = subprocess.run([os.path.abspath(program), *options], text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout, done.returncode
