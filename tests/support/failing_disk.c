/* A disk that fails on demand: preloaded into a process, it makes chosen calls on chosen files fail.
 *
 * The file named by FAILING_DISK is mapped. It begins with a line "CALL ERRNO TIMES PATTERN"; at HITS_AT is a counter
 * of the calls that failed. CALL is one of open, read, write, half, sync, drop, truncate, rename, remove. A call fails
 * until the counter is TIMES, on files whose path (without ".tmp") matches the shell pattern.
 *
 * "half" writes half of the data, and the next write fails. "drop" is a sync that fails, after which the file has only
 * what an earlier sync has written, as when the kernel drops pages that it could not write.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 4096, HITS_AT = 2048, FILES = 512, PATH_SIZE = 1024 };

static char *control;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char path[256]; off_t synced; } files[FILES]; /* sizes at the last sync */
static int halved;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAILING_DISK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *found = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED) control = found;
    close(fd);
}

static int is_wanted(const char *path, const char *pattern) {
    char name[PATH_SIZE];
    size_t length = strlen(path);
    if (length > 4 && !strcmp(path + length - 4, ".tmp")) length -= 4;
    if (length >= sizeof name) return 0;
    memcpy(name, path, length);
    name[length] = 0;
    return !fnmatch(pattern, name, 0);
}

/* The error of a call, 0 for none. */
static int met(const char *call, const char *path) {
    char wanted[16], pattern[PATH_SIZE];
    int number, times, failed = 0;
    if (!control || !control[0]) return 0;
    pthread_mutex_lock(&lock);
    int *hits = (int *)(control + HITS_AT);
    if (sscanf(control, "%15s %d %d %1023s", wanted, &number, &times, pattern) == 4 && !strcmp(wanted, call)
        && *hits < times && is_wanted(path, pattern)) {
        ++*hits;
        failed = number;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

static const char *path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = control && control[0] ? readlink(link, path, PATH_SIZE - 1) : 0;
    path[length > 0 ? length : 0] = 0;
    return path;
}

#define FAIL(call, path) do { int error = met(call, path); if (error) { errno = error; return -1; } } while (0)

static int opened(const char *path, int flags, mode_t mode) {
    REAL(int, "open64", const char *, int, ...);
    FAIL("open", path);
    return real(path, flags, mode);
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list more; \
            va_start(more, flags); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        return opened(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define PREAD(name, type) \
    ssize_t name(int fd, void *data, size_t size, type position) { \
        REAL(ssize_t, #name, int, void *, size_t, type); \
        char path[PATH_SIZE]; \
        FAIL("read", path_of(fd, path)); \
        return real(fd, data, size, position); \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t read(int fd, void *data, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    char path[PATH_SIZE];
    FAIL("read", path_of(fd, path));
    return real(fd, data, size);
}

/* How much of a write is carried out: all (0), a part, or an error (-1). */
static ssize_t part(const char *path, size_t size) {
    char pattern[PATH_SIZE];
    int number, times;
    if (!control || sscanf(control, "half %d %d %1023s", &number, &times, pattern) != 3) return 0;
    if (!is_wanted(path, pattern)) return 0;
    if (!halved && *(int *)(control + HITS_AT) < times) {
        halved = 1;
        return size / 2 ? size / 2 : 1;
    }
    halved = 0;
    if (!(number = met("half", path))) return 0;
    errno = number;
    return -1;
}

#define SHORTEN(size) \
    char path[PATH_SIZE]; \
    FAIL("write", path_of(fd, path)); \
    ssize_t some = part(path, size); \
    if (some < 0) return -1; \
    if (some) size = some;

#define PWRITE(name, type) \
    ssize_t name(int fd, const void *data, size_t size, type position) { \
        REAL(ssize_t, #name, int, const void *, size_t, type); \
        SHORTEN(size) \
        return real(fd, data, size, position); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    SHORTEN(size)
    return real(fd, data, size);
}

/* Notes the size of a file that was synced, or cuts the file to the size that it had then. */
static int drop_or_note(int fd, const char *path, off_t size, int drops) {
    int result = 0;
    pthread_mutex_lock(&lock);
    for (int n = 0; n < FILES && strlen(path) < sizeof files[n].path; n++) {
        if (files[n].path[0] && strcmp(files[n].path, path)) continue;
        if (drops) result = syscall(SYS_ftruncate, fd, files[n].path[0] ? files[n].synced : 0);
        else files[n].synced = size;
        strcpy(files[n].path, path);
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    char path[PATH_SIZE];
    struct stat found;
    FAIL("sync", path_of(fd, path));
    int error = met("drop", path);
    int result = error ? -1 : real(fd);
    if (path[0] && (error || !result) && !fstat(fd, &found) && S_ISREG(found.st_mode) &&
        drop_or_note(fd, path, found.st_size, error)) result = -1;
    if (error) errno = error;
    return result;
}

#define TRUNCATE(name, type) \
    int name(int fd, type size) { \
        REAL(int, #name, int, type); \
        char path[PATH_SIZE]; \
        FAIL("truncate", path_of(fd, path)); \
        return real(fd, size); \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *old, const char *new) {
    REAL(int, "rename", const char *, const char *);
    FAIL("rename", old);
    return real(old, new);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    FAIL("remove", path);
    return real(path);
}
