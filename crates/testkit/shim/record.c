/* A preload library for tests: records, in order, what a program does to the files of one directory, and fails or
 * delays writes and syncs on demand.
 *
 * Each change is appended to the log in one call with O_APPEND, after it was made. A sync has a record before it and
 * one after: only what was written before the first of them is certain to be on disk after the second. The program's
 * clients append their own records to the same log, so a record of an acknowledgement comes after the sync it relied on.
 *
 * Not seen: changes through mapped memory (SQLite's -shm file, which no recovery relies on), and system calls that
 * bypass the C library. Files are known by their inode; names are relative to the directory.
 *
 * Environment: SHIM_DIRECTORY, SHIM_LOG, SHIM_CONTROL (a file of `struct control`, mapped, which the test changes).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CREATE = 1, OPEN, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, UNLINK, RENAME, DIR_SYNC_BEGIN, DIR_SYNC_END };

struct record {
    uint32_t magic;
    uint32_t kind;
    uint64_t inode;
    uint64_t offset; /* of a write; the size of a truncation; the number of a sync */
    uint64_t length; /* of the data that follows */
};

struct control {
    int32_t sync_errno;  /* every fsync and fdatasync fails with this, unless 0 */
    int32_t write_errno; /* every write and truncation fails with this, unless 0 */
    int32_t sync_delay_ms;
    int32_t failed; /* how many calls failed because of these */
};

static const uint32_t MAGIC = 0x50415252;
static int log_fd = -1;
static char directory[PATH_MAX];
static size_t directory_length;
static dev_t device;
static struct control nothing;
static volatile struct control *control = &nothing;
static uint64_t syncs;

/* The C library's own function behind ours. */
#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static ssize_t raw_writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    return next(fd, parts, count);
}

static int raw_open(const char *path, int flags, mode_t mode) {
    NEXT(open);
    return next(path, flags, mode);
}

__attribute__((constructor)) static void start(void) {
    const char *watched = getenv("SHIM_DIRECTORY"), *log = getenv("SHIM_LOG"), *controls = getenv("SHIM_CONTROL");
    struct stat found;
    if (!watched || !log || !realpath(watched, directory) || stat(directory, &found) != 0) return;
    directory_length = strlen(directory);
    device = found.st_dev;
    if (controls) {
        int fd = raw_open(controls, O_RDWR | O_CLOEXEC, 0);
        void *mapped = fd < 0 ? MAP_FAILED
                              : mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped == MAP_FAILED) {
            perror("record.c: the control file");
            abort();
        }
        control = mapped;
        close(fd);
    }
    int fd = raw_open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror("record.c: the log");
        abort();
    }
    /* Out of the way of programs that rely on low numbers. */
    log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 900);
    close(fd);
}

/* The name under the watched directory, or NULL for a path elsewhere. */
static const char *name_under(const char *path, char *room) {
    if (log_fd < 0 || !path) return NULL;
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here) || snprintf(room, PATH_MAX, "%s/%s", here, path) >= PATH_MAX) return NULL;
        path = room;
    }
    if (strncmp(path, directory, directory_length) != 0 || path[directory_length] != '/') return NULL;
    return path + directory_length + 1;
}

/* Shared memory, which no recovery relies on, and the program's log. */
static int is_ignored(const char *name) {
    size_t length = strlen(name);
    return length >= 4 && (strcmp(name + length - 4, "-shm") == 0 || strcmp(name + length - 4, ".log") == 0);
}

/* The regular file behind a descriptor, if it is in the watched directory. */
static int watched(int fd, struct stat *found) {
    if (log_fd < 0 || fd < 0 || fstat(fd, found) != 0 || found->st_dev != device || !S_ISREG(found->st_mode)) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strncmp(path, directory, directory_length) == 0 && path[directory_length] == '/' && !is_ignored(path);
}

static void record(uint32_t kind, uint64_t inode, uint64_t offset, const void *data, size_t length) {
    int before = errno;
    struct record head = {MAGIC, kind, inode, offset, length};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, length}};
    ssize_t written = raw_writev(log_fd, parts, length ? 2 : 1);
    if (written != (ssize_t)(sizeof head + length)) {
        /* A recording with a hole would prove nothing. */
        perror("record.c: writing the log");
        abort();
    }
    errno = before;
}

static int refused(int number) {
    if (!number) return 0;
    __sync_fetch_and_add((int32_t *)&control->failed, 1);
    errno = number;
    return 1;
}

static int opened(int fd, const char *path, int existed) {
    char room[PATH_MAX];
    struct stat found;
    const char *name = name_under(path, room);
    int before = errno;
    if (fd >= 0 && name && !is_ignored(name) && fstat(fd, &found) == 0 && S_ISREG(found.st_mode))
        record(existed ? OPEN : CREATE, found.st_ino, 0, name, strlen(name));
    errno = before;
    return fd;
}

static int exists(const char *path) {
    struct stat found;
    int before = errno, result = lstat(path, &found) == 0;
    errno = before;
    return result;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? (mode_t)va_arg(arguments, int) : 0;
}

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        int existed = exists(path); \
        int fd = opened(next(path, flags, mode), path, existed); \
        if (fd >= 0 && (flags & O_TRUNC)) truncated(fd, 0); \
        return fd; \
    }

#define OPENING_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        NEXT(name); \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        int plain = at == AT_FDCWD || path[0] == '/'; \
        int existed = plain && exists(path); \
        int fd = next(at, path, flags, mode); \
        if (plain) opened(fd, path, existed); \
        if (fd >= 0 && (flags & O_TRUNC)) truncated(fd, 0); \
        return fd; \
    }

static void truncated(int fd, off_t size) {
    struct stat found;
    if (watched(fd, &found)) record(TRUNCATE, found.st_ino, size, NULL, 0);
}

OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

static ssize_t wrote(struct stat *file, const void *data, ssize_t length, off_t offset) {
    if (length > 0) record(WRITE, file->st_ino, offset, data, length);
    return length;
}

ssize_t write(int fd, const void *data, size_t length) {
    NEXT(write);
    struct stat file;
    if (!watched(fd, &file)) return next(fd, data, length);
    if (refused(control->write_errno)) return -1;
    ssize_t done = next(fd, data, length);
    return wrote(&file, data, done, lseek(fd, 0, SEEK_CUR) - done);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat file;
    if (!watched(fd, &file)) return raw_writev(fd, parts, count);
    ssize_t all = 0;
    for (int n = 0; n < count; n++) {
        ssize_t done = write(fd, parts[n].iov_base, parts[n].iov_len);
        if (done < 0) return all ? all : done;
        all += done;
        if (done < (ssize_t)parts[n].iov_len) break;
    }
    return all;
}

#define POSITIONED(name) \
    ssize_t name(int fd, const void *data, size_t length, off_t offset) { \
        NEXT(name); \
        struct stat file; \
        if (!watched(fd, &file)) return next(fd, data, length, offset); \
        if (refused(control->write_errno)) return -1; \
        return wrote(&file, data, next(fd, data, length, offset), offset); \
    }

POSITIONED(pwrite)
POSITIONED(pwrite64)

#define TRUNCATION(name) \
    int name(int fd, off_t size) { \
        NEXT(name); \
        struct stat file; \
        int ours = watched(fd, &file); \
        if (ours && refused(control->write_errno)) return -1; \
        int result = next(fd, size); \
        if (ours && result == 0) record(TRUNCATE, file.st_ino, size, NULL, 0); \
        return result; \
    }

TRUNCATION(ftruncate)
TRUNCATION(ftruncate64)

static int is_the_directory(int fd, struct stat *found) {
    struct stat ours;
    return log_fd >= 0 && fstat(fd, found) == 0 && S_ISDIR(found->st_mode) && stat(directory, &ours) == 0 &&
           ours.st_ino == found->st_ino && ours.st_dev == found->st_dev;
}

#define SYNC(name) \
    int name(int fd) { \
        NEXT(name); \
        struct stat file; \
        int of_file = watched(fd, &file), of_directory = !of_file && is_the_directory(fd, &file); \
        if (!of_file && !of_directory) return next(fd); \
        int delay = control->sync_delay_ms; \
        if (delay > 0) { \
            struct timespec pause = {delay / 1000, (delay % 1000) * 1000000L}; \
            nanosleep(&pause, NULL); \
        } \
        if (refused(control->sync_errno)) return -1; \
        uint64_t number = __sync_add_and_fetch(&syncs, 1); \
        record(of_file ? SYNC_BEGIN : DIR_SYNC_BEGIN, file.st_ino, number, NULL, 0); \
        int result = next(fd); \
        if (result == 0) record(of_file ? SYNC_END : DIR_SYNC_END, file.st_ino, number, NULL, 0); \
        return result; \
    }

SYNC(fsync)
SYNC(fdatasync)

static void unlinked(const char *path) {
    char room[PATH_MAX];
    const char *name = name_under(path, room);
    if (name && !is_ignored(name)) record(UNLINK, 0, 0, name, strlen(name));
}

int unlink(const char *path) {
    NEXT(unlink);
    int result = next(path);
    if (result == 0) unlinked(path);
    return result;
}

int unlinkat(int at, const char *path, int flags) {
    NEXT(unlinkat);
    int result = next(at, path, flags);
    if (result == 0 && (at == AT_FDCWD || path[0] == '/') && !(flags & AT_REMOVEDIR)) unlinked(path);
    return result;
}

/* From and to, with a zero byte between. A file from elsewhere has no recorded content, so the rebuild refuses it. */
static int renamed(int result, const char *from, const char *to) {
    char room[2][PATH_MAX], both[2 * PATH_MAX + 1];
    const char *old = name_under(from, room[0]), *new = name_under(to, room[1]);
    if (result == 0 && (old || new)) {
        int length = snprintf(both, sizeof both, "%s%c%s", old ? old : "", 0, new ? new : "");
        record(RENAME, 0, 0, both, length);
    }
    return result;
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return renamed(next(from, to), from, to);
}

/* The path, if it does not depend on a descriptor. */
static const char *plain(int at, const char *path) { return at == AT_FDCWD || path[0] == '/' ? path : NULL; }

int renameat(int from_at, const char *from, int to_at, const char *to) {
    NEXT(renameat);
    return renamed(next(from_at, from, to_at, to), plain(from_at, from), plain(to_at, to));
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    NEXT(renameat2);
    return renamed(next(from_at, from, to_at, to, flags), plain(from_at, from), plain(to_at, to));
}
