/* Between the service and the kernel, for drills: writes down what goes to the disk and to the
 * network, in the order in which it happens, and lets the disk or the clock fail on demand.
 * Loaded with LD_PRELOAD; the drills build it with the C compiler of the machine.
 *
 *   SVC_SHIM_TRACE    append the trace to this file (none: nothing is written down)
 *   SVC_SHIM_CONTROL  a file with a `struct control`; whoever writes to it changes the weather
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t clock_shift_ms; /* added to the wall clock */
    int32_t disk_is_full;   /* writes to the database fail with ENOSPC */
    int32_t sync_fails;     /* so many calls of fsync fail with EIO */
    int32_t is_read_only;   /* the database's files cannot be opened for writing: EROFS */
    int32_t unused;
};

struct record {
    char kind; /* S start, W write, T truncate, B sync begins, E sync has ended, A sent to a peer */
    char file; /* 0 the database, 1 its log */
    char unused[2];
    uint32_t length; /* bytes that follow */
    uint64_t offset; /* in the file; of T: the new size */
};

#define FDS 65536
#define NOT_OURS (-1)
#define SENT_MAX 4096

static signed char file_of[FDS]; /* 0: not looked at; else file + 1, or NOT_OURS */
static struct control *weather;
static struct control calm;
static int trace = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The next one of that name: the C library's. */
#define REAL(name)                                                        \
    (__extension__({                                                      \
        static __typeof__(&name) found;                                   \
        if (!found) found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);   \
        found;                                                            \
    }))

static void note(char kind, int file, uint64_t offset, const struct iovec *parts, int count) {
    if (trace < 0) return;
    struct record record = {.kind = kind, .file = (char)file, .offset = offset};
    struct iovec all[64] = {{&record, sizeof record}};
    uint32_t length = 0;
    int used = 1;
    for (int i = 0; i < count && used < 64; i++) {
        if (parts[i].iov_len == 0) continue;
        all[used++] = parts[i];
        length += (uint32_t)parts[i].iov_len;
    }
    record.length = length;
    if (REAL(writev)(trace, all, used) != (ssize_t)(sizeof record + length)) abort();
}

__attribute__((constructor)) static void start(void) {
    weather = &calm;
    const char *control = getenv("SVC_SHIM_CONTROL");
    if (control) {
        int fd = REAL(open)(control, O_RDWR);
        void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *weather, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED) abort();
        weather = page;
        close(fd);
    }
    const char *path = getenv("SVC_SHIM_TRACE");
    if (path) {
        trace = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (trace < 0) abort();
        note('S', 0, 0, NULL, 0);
    }
}

/* Which of the database's files this is, by its name. */
static int file_of_fd(int fd) {
    if (fd < 0 || fd >= FDS) return NOT_OURS;
    if (file_of[fd] == 0) {
        char link[64], path[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length < 0 ? 0 : length] = 0;
        const char *name = strrchr(path, '/');
        name = name ? name + 1 : path;
        file_of[fd] = !strcmp(name, "svc.db") ? 1 : !strcmp(name, "svc.db-wal") ? 2 : NOT_OURS;
    }
    return file_of[fd] > 0 ? file_of[fd] - 1 : NOT_OURS;
}

/* The database, its log, its lock: whatever is opened to be changed. */
static int is_refused(const char *path, int flags) {
    if (!weather || !weather->is_read_only || (flags & O_ACCMODE) == O_RDONLY) return 0;
    const char *name = strrchr(path, '/');
    return !strncmp(name ? name + 1 : path, "svc.db", 6);
}

#define OPEN(name)                                  \
    int name(const char *path, int flags, ...) {    \
        va_list more;                               \
        va_start(more, flags);                      \
        mode_t mode = va_arg(more, mode_t);         \
        va_end(more);                               \
        if (is_refused(path, flags)) {              \
            errno = EROFS;                          \
            return -1;                              \
        }                                           \
        return REAL(name)(path, flags, mode);       \
    }

OPEN(open)
OPEN(open64)

int close(int fd) {
    if (fd >= 0 && fd < FDS) file_of[fd] = 0;
    return REAL(close)(fd);
}

static ssize_t put(int fd, int file, const void *bytes, size_t length, off64_t offset) {
    if (weather->disk_is_full) {
        errno = ENOSPC;
        return -1;
    }
    pthread_mutex_lock(&lock);
    ssize_t written = REAL(pwrite64)(fd, bytes, length, offset);
    if (written > 0) {
        struct iovec part = {(void *)bytes, (size_t)written};
        note('W', file, (uint64_t)offset, &part, 1);
    }
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    int file = file_of_fd(fd);
    return file == NOT_OURS ? REAL(pwrite64)(fd, bytes, length, offset) : put(fd, file, bytes, length, offset);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return pwrite64(fd, bytes, length, offset); }

/* A peer hears these bytes from now on, whatever happens to the disk. */
static void tell(int fd, const struct iovec *parts, int count) {
    struct stat about;
    if (trace < 0 || fd == trace || fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode)) return;
    struct iovec kept[8];
    size_t left = SENT_MAX;
    int used = 0;
    for (int i = 0; i < count && used < 8 && left > 0; i++) {
        kept[used] = parts[i];
        if (kept[used].iov_len > left) kept[used].iov_len = left;
        left -= kept[used++].iov_len;
    }
    pthread_mutex_lock(&lock);
    note('A', 0, 0, kept, used);
    pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    int file = file_of_fd(fd);
    if (file == NOT_OURS) {
        struct iovec part = {(void *)bytes, length};
        tell(fd, &part, 1);
        return REAL(write)(fd, bytes, length);
    }
    off64_t offset = lseek64(fd, 0, SEEK_CUR);
    ssize_t written = put(fd, file, bytes, length, offset);
    if (written > 0) lseek64(fd, written, SEEK_CUR);
    return written;
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    tell(fd, parts, count);
    return REAL(writev)(fd, parts, count);
}
ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    struct iovec part = {(void *)bytes, length};
    tell(fd, &part, 1);
    return REAL(send)(fd, bytes, length, flags);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    tell(fd, message->msg_iov, (int)message->msg_iovlen);
    return REAL(sendmsg)(fd, message, flags);
}

int ftruncate64(int fd, off64_t size) {
    int file = file_of_fd(fd);
    if (file == NOT_OURS) return REAL(ftruncate64)(fd, size);
    pthread_mutex_lock(&lock);
    int done = REAL(ftruncate64)(fd, size);
    if (done == 0) note('T', file, (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int sync_with(int (*synced)(int), int fd) {
    int file = file_of_fd(fd);
    if (file == NOT_OURS) return synced(fd);
    if (weather->sync_fails > 0) {
        weather->sync_fails--;
        errno = EIO;
        return -1;
    }
    pthread_mutex_lock(&lock);
    note('B', file, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    int done = synced(fd);
    pthread_mutex_lock(&lock);
    if (done == 0) note('E', file, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int fsync(int fd) { return sync_with(REAL(fsync), fd); }
int fdatasync(int fd) { return sync_with(REAL(fdatasync), fd); }

int unlink(const char *path) {
    const char *name = strrchr(path, '/');
    pthread_mutex_lock(&lock);
    int done = REAL(unlink)(path);
    if (done == 0 && !strcmp(name ? name + 1 : path, "svc.db-wal")) note('T', 1, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = REAL(clock_gettime)(clock, now);
    if (done == 0 && clock == CLOCK_REALTIME) {
        int64_t nanos = now->tv_nsec + weather->clock_shift_ms % 1000 * 1000000;
        now->tv_sec += weather->clock_shift_ms / 1000 + (nanos >= 1000000000) - (nanos < 0);
        now->tv_nsec = (nanos + 1000000000) % 1000000000;
    }
    return done;
}
