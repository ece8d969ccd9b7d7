"""What the public headers declare, as C's preprocessor leaves it: functions, structs, constants."""
import re
import subprocess

API = r'__attribute__ *\(\(visibility\("default"\)\)\)'
# What has no meaning outside of C: initializers, lists that are expanded above, and what types and names are made of.
NOT_CONSTANTS = re.compile(r"_(H|LIST|DEFAULT|ENUMERATOR|BEGIN|END)$|_CONFIG_TYPE_|^FSDP_(API|SETTINGS|CONFIG_FIELD)$|^FSDP_IN_PLACE$|"
                           r"^FSDP_BUILT_WITH")


def preprocess(compiler, flags, root, option):
    command = [compiler, "-E", option, *flags, f"-I{root}/include", "-x", "c", "-"]
    return subprocess.run(command, input="#include <fsdp/fsdp.h>\n", capture_output=True, text=True, check=True).stdout


def split_arguments(text):
    """The parameters of a function or the declarators of a member; commas within parentheses divide nothing."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [] if parts in ([""], ["void"]) else parts


class Headers:
    def __init__(self, compiler, flags, root):
        text = " ".join(preprocess(compiler, flags, root, "-P").split())
        self.opaque, self.structs, self.enumerators, self.functions, self.callbacks = [], {}, [], {}, {}
        for match in re.finditer(rf"{API} ([^;{{]*?)\b(fsdp_\w+) ?\(((?:[^()]|\([^()]*\))*)\) ?;", text):
            self.functions[match[2]] = (match[1].strip(), split_arguments(match[3]))
        for match in re.finditer(r"static inline (\w+) (fsdp_\w+)\(([^)]*)\)", text):
            self.functions[match[2]] = ("inline", split_arguments(match[3]))
        for match in re.finditer(r"typedef struct (fsdp_\w+) \1;", text):
            self.opaque.append(match[1])
        for match in re.finditer(r"typedef struct (fsdp_\w+) \{(.*?)\} \1;", text):
            self.structs[match[1]] = list(self.members(match[2]))
        for match in re.finditer(r"\benum(?: fsdp_\w+)? \{([^}]*)\}", text):
            self.enumerators += re.findall(r"\b(FSDP_\w+) =", match[1])
        for match in re.finditer(r"typedef (\w+) \(\*(fsdp_\w+)\)\(([^)]*)\);", text):
            self.callbacks[match[2]] = split_arguments(match[3])
        self.enums = set(re.findall(r"typedef enum (fsdp_\w+)", text))
        defined = re.findall(r"^#define (FSDP_\w+)(?: |$)", preprocess(compiler, flags, root, "-dM"), re.M)
        self.macros = sorted(name for name in defined if not NOT_CONSTANTS.search(name))

    @staticmethod
    def members(body):
        """(name, type, extent) of each member, in order; a function pointer has the type `(*)`."""
        for member in filter(None, (part.strip() for part in body.split(";"))):
            function = re.match(r"\w+ \(\*(\w+)\)", member)
            if function:
                yield function[1], "(*)", None
                continue
            first, *others = split_arguments(member)
            match = re.match(r"(.*?[ *])(\w+)(?: ?\[(.*)\])?$", first)
            for name, extent in [(match[2], match[3])] + [(other, None) for other in others]:
                yield name, match[1].strip(), extent
