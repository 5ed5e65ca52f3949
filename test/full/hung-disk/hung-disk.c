/*
 * A disk that stops answering, for one process: loaded with LD_PRELOAD, it holds every call on a path below
 * $HUNG_DISK_ROOT, or on a descriptor opened there, for as long as the file $HUNG_DISK_SWITCH exists.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST_DESCRIPTORS 65536
#define REAL(name) ((__typeof__(&name))real(#name))

static char held[MOST_DESCRIPTORS];

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static long raw(long number, long a, long b, long c, long d) {
  static long (*call)(long, ...);
  if (!call) call = (long (*)(long, ...))real("syscall");
  return call(number, a, b, c, d);
}

static void put(int fd, const char *text) { raw(SYS_write, fd, (long)text, (long)strlen(text), 0); }

/* Named in $HUNG_DISK_REPORT: what the main thread waits for, and with it everything else in the process. */
static void report(const char *call, const char *what) {
  const char *to = getenv("HUNG_DISK_REPORT");
  if (!to || raw(SYS_gettid, 0, 0, 0, 0) != getpid()) return;
  int fd = (int)raw(SYS_openat, AT_FDCWD, (long)to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  put(fd, call);
  put(fd, " ");
  put(fd, what);
  put(fd, "\n");
  raw(SYS_close, fd, 0, 0, 0);
}

static void wait_for_disk(const char *call, const char *what) {
  const char *stop = getenv("HUNG_DISK_SWITCH");
  const struct timespec pause = {0, 50 * 1000 * 1000};
  int is_reported = 0;
  while (stop && raw(SYS_faccessat, AT_FDCWD, (long)stop, F_OK, 0) == 0) {
    if (!is_reported++) report(call, what);
    nanosleep(&pause, NULL);
  }
}

static int is_below(const char *path) {
  const char *root = getenv("HUNG_DISK_ROOT");
  if (!root || !path) return 0;
  size_t length = strlen(root);
  return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static void path_call(const char *call, const char *path) {
  if (is_below(path)) wait_for_disk(call, path);
}

static void descriptor_call(const char *call, int fd) {
  if (fd >= 0 && fd < MOST_DESCRIPTORS && held[fd]) wait_for_disk(call, "a descriptor");
}

static int opened(int fd, const char *path) {
  if (fd >= 0 && fd < MOST_DESCRIPTORS) held[fd] = is_below(path);
  return fd;
}

static mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0; }

#define OPEN(name)                                   \
  int name(const char *path, int flags, ...) {       \
    va_list rest;                                    \
    va_start(rest, flags);                           \
    mode_t mode = mode_of(flags, rest);              \
    va_end(rest);                                    \
    path_call(#name, path);                          \
    return opened(REAL(name)(path, flags, mode), path); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                          \
  int name(int at, const char *path, int flags, ...) {        \
    va_list rest;                                             \
    va_start(rest, flags);                                    \
    mode_t mode = mode_of(flags, rest);                       \
    va_end(rest);                                             \
    path_call(#name, path);                                   \
    return opened(REAL(name)(at, path, flags, mode), path);   \
  }
OPENAT(openat)
OPENAT(openat64)

#define ON_PATH(result, name, parameters, arguments) \
  result name parameters {                           \
    path_call(#name, path);                          \
    return REAL(name) arguments;                     \
  }
ON_PATH(int, rename, (const char *path, const char *to), (path, to))
ON_PATH(int, link, (const char *path, const char *to), (path, to))
ON_PATH(int, unlink, (const char *path), (path))
ON_PATH(int, rmdir, (const char *path), (path))
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode))
ON_PATH(int, access, (const char *path, int mode), (path, mode))
ON_PATH(int, stat, (const char *path, struct stat *found), (path, found))
ON_PATH(int, lstat, (const char *path, struct stat *found), (path, found))
ON_PATH(int, stat64, (const char *path, struct stat64 *found), (path, found))
ON_PATH(int, lstat64, (const char *path, struct stat64 *found), (path, found))
ON_PATH(int, statfs, (const char *path, struct statfs *found), (path, found))
ON_PATH(int, statfs64, (const char *path, struct statfs64 *found), (path, found))
ON_PATH(int, utimensat, (int at, const char *path, const struct timespec times[2], int flags), (at, path, times, flags))
ON_PATH(DIR *, opendir, (const char *path), (path))
ON_PATH(int, scandir,
        (const char *path, struct dirent ***names, int (*filter)(const struct dirent *),
         int (*compare)(const struct dirent **, const struct dirent **)),
        (path, names, filter, compare))
ON_PATH(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *found), (at, path, flags, mask, found))

#define ON_DESCRIPTOR(result, name, parameters, arguments) \
  result name parameters {                                 \
    descriptor_call(#name, fd);                            \
    return REAL(name) arguments;                           \
  }
ON_DESCRIPTOR(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size))
ON_DESCRIPTOR(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
ON_DESCRIPTOR(ssize_t, pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
ON_DESCRIPTOR(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
ON_DESCRIPTOR(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
ON_DESCRIPTOR(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
ON_DESCRIPTOR(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
ON_DESCRIPTOR(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
ON_DESCRIPTOR(ssize_t, pwritev64, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at))
ON_DESCRIPTOR(int, fsync, (int fd), (fd))
ON_DESCRIPTOR(int, fdatasync, (int fd), (fd))
ON_DESCRIPTOR(int, ftruncate, (int fd, off_t size), (fd, size))
ON_DESCRIPTOR(int, ftruncate64, (int fd, off64_t size), (fd, size))
ON_DESCRIPTOR(int, futimens, (int fd, const struct timespec times[2]), (fd, times))

static void closing(int fd) {
  descriptor_call("close", fd);
  if (fd >= 0 && fd < MOST_DESCRIPTORS) held[fd] = 0;
}

int close(int fd) {
  closing(fd);
  return REAL(close)(fd);
}

/* libuv asks for some calls by number. */
long syscall(long number, ...) {
  va_list rest;
  long argument[6];
  va_start(rest, number);
  for (int i = 0; i < 6; i++) argument[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_statx) {
    const char *path = (const char *)argument[1];
    if (path && *path) path_call("statx", path);
    else descriptor_call("statx", (int)argument[0]);
  }
  if (number == SYS_close) closing((int)argument[0]);
  return ((long (*)(long, ...))real("syscall"))(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
