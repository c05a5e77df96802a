/* A stand-in for libnvidia-ml.so.1: the calls of NVIDIA's management library that the runner makes, on made-up GPUs.

   Everything it knows lies in one file, which $NVML_STANDIN names and every process maps: so several processes see the
   same GPUs, and a test reads and changes them while others use them. driver.py makes that file; `struct state` is its
   layout, and both have to agree in it.

   A rule says of calls by name (a glob, nvmlDeviceSet*) what they answer instead, or how long they take. What a rule
   lets pass is answered as nvml.h says: unsupported before Volta, only for root, lost, and so on. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x4e564d4cu
#define DEVICES 4
#define RULES 16
#define CLIENTS 256
#define ENTRIES 4096
#define STATES 8
#define PROCESSES 8
#define FIELDS 5

typedef uint32_t answer; /* nvmlReturn_t */
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9, LOST = 15 };
enum { VOLTA = 5, AMPERE = 7 };
enum { GRAPHICS = 0, SM = 1, MEMORY = 2 };
#define TDP 0xffffff01u
#define UNLIMITED 0xffffff02u
#define SLOWED 0xecu /* the reasons that hold a clock down: power, heat, the brake, hardware */

struct rule {
    char name[64];
    uint32_t answer, after, met, unused; /* `after` calls are let through first */
    double seconds;
};
struct device {
    char uuid[96], name[96];
    uint32_t architecture, major, minor, lost;
    uint32_t mig, ecc, persistent, has_application; /* mig, ecc: 0 off, 1 on, 2 not supported */
    uint32_t sm_lowest, sm_highest, sm_step, sm_base;
    uint32_t sm_slowed, busy, power, celsius;
    uint32_t slices, unused; /* that MIG has cut, where mig is on */
    uint32_t memory_clocks[STATES]; /* the highest first; 0 ends them */
    uint32_t application[2], application_default[2]; /* memory, SM */
    uint32_t locked_sm[2], locked_memory[2];
    uint32_t processes[PROCESSES];
    uint64_t memory, reasons, energy;
    uint64_t counters[FIELDS]; /* ns, of the fields 74, 76, 269, 270, 271 */
};
struct entry {
    uint64_t nanoseconds;
    uint32_t pid, device, answer, a, b, unused;
    char name[48];
};
struct state {
    uint32_t magic, devices, only_root, entries;
    char driver[80];
    uint32_t clients[CLIENTS]; /* processes that have it open */
    struct rule rules[RULES];
    struct device device[DEVICES];
    struct entry log[ENTRIES];
};

static struct state *state;
static unsigned opened;

static answer wait_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) && errno == EINTR) /* a driver that hangs minds no signal */
        ;
    return OK;
}

static answer by_rule(const char *name)
{
    if (!state || !opened)
        return UNINITIALIZED;
    for (int k = 0; k < RULES; k++) {
        struct rule *rule = &state->rules[k];
        if (!rule->name[0] || fnmatch(rule->name, name, 0))
            continue;
        if (__atomic_fetch_add(&rule->met, 1, __ATOMIC_SEQ_CST) < rule->after)
            continue;
        if (rule->seconds > 0)
            wait_for(rule->seconds);
        if (rule->answer)
            return rule->answer;
    }
    return OK;
}

static struct device *of(void *handle)
{
    uintptr_t number = (uintptr_t)handle;
    return state && number >= 1 && number <= state->devices ? &state->device[number - 1] : NULL;
}

/* A slice has a handle of its own, which only the calls that tell what it is take. */
#define SLICE 0x100u
static uint32_t slice_of(void *handle) { return (uint32_t)((uintptr_t)handle / SLICE); }
static struct device *cut_from(void *handle) { return of((void *)((uintptr_t)handle % SLICE)); }

#define ASKED                                                                                                          \
    answer refused = by_rule(__func__);                                                                                \
    if (refused)                                                                                                       \
        return refused;
#define OF(handle)                                                                                                     \
    struct device *gpu = of(handle);                                                                                   \
    ASKED                                                                                                              \
    if (!gpu)                                                                                                          \
        return INVALID;                                                                                                \
    if (gpu->lost)                                                                                                     \
        return LOST;

#define OF_SLICE(handle)                                                                                               \
    struct device *gpu = cut_from(handle);                                                                             \
    ASKED                                                                                                              \
    if (!gpu)                                                                                                          \
        return INVALID;                                                                                                \
    if (gpu->lost)                                                                                                     \
        return LOST;

/* --- opening --- */

static answer map_state(void)
{
    const char *path = getenv("NVML_STANDIN");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return NO_DRIVER;
    struct stat found;
    void *where = MAP_FAILED;
    if (!fstat(file, &found) && found.st_size == (off_t)sizeof(struct state))
        where = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (where == MAP_FAILED || ((struct state *)where)->magic != MAGIC) {
        fprintf(stderr, "the stand-in's state %s is not what this library was built for\n", path);
        return NO_DRIVER;
    }
    if (state)
        munmap(state, sizeof(struct state));
    state = where;
    return OK;
}

static void client(uint32_t from, uint32_t to)
{
    for (int k = 0; k < CLIENTS; k++) {
        uint32_t expected = from;
        if (__atomic_compare_exchange_n(&state->clients[k], &expected, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return;
    }
}

static answer start(const char *name)
{
    if (!opened) {
        answer found = map_state();
        if (found)
            return found;
    }
    opened++;
    answer refused = by_rule(name);
    if (refused)
        opened--;
    else if (opened == 1)
        client(0, (uint32_t)getpid());
    return refused;
}

answer nvmlInitWithFlags(uint32_t flags) { (void)flags; return start(__func__); }
answer nvmlInit_v2(void) { return start(__func__); }

answer nvmlShutdown(void)
{
    if (!opened)
        return UNINITIALIZED;
    if (!--opened)
        client((uint32_t)getpid(), 0);
    return OK;
}

const char *nvmlErrorString(answer code)
{
    static char text[40];
    snprintf(text, sizeof text, "stand-in's error %u", code);
    return text;
}

static answer text(char *to, uint32_t room, const char *from)
{
    if (strlen(from) + 1 > room)
        return TOO_SMALL;
    strcpy(to, from);
    return OK;
}

answer nvmlSystemGetDriverVersion(char *version, uint32_t room) { ASKED return text(version, room, state->driver); }
answer nvmlSystemGetNVMLVersion(char *version, uint32_t room) { ASKED return text(version, room, "13.0-stand-in"); }

/* --- identity --- */

answer nvmlDeviceGetCount_v2(uint32_t *count) { ASKED *count = state->devices; return OK; }

answer nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **handle)
{
    ASKED
    if (index >= state->devices)
        return INVALID;
    *handle = (void *)(uintptr_t)(index + 1);
    return state->device[index].lost ? LOST : OK;
}

static void name_of(const struct device *gpu, uint32_t slice, char *to, size_t room)
{
    if (slice)
        snprintf(to, room, "MIG%.80s-%u", gpu->uuid + strlen("GPU"), slice);
    else
        snprintf(to, room, "%.95s", gpu->uuid);
}

answer nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    ASKED
    for (uint32_t k = 0; k < state->devices; k++)
        for (uint32_t slice = 0; slice <= state->device[k].slices; slice++) {
            char own[96];
            name_of(&state->device[k], slice, own, sizeof own);
            if (!strcmp(own, uuid)) {
                *handle = (void *)(uintptr_t)(k + 1 + SLICE * slice);
                return state->device[k].lost ? LOST : OK;
            }
        }
    return NOT_FOUND;
}

answer nvmlDeviceGetMaxMigDeviceCount(void *handle, uint32_t *count) { OF(handle) *count = gpu->mig == 1 ? 7 : 0; return OK; }

answer nvmlDeviceGetMigDeviceHandleByIndex(void *handle, uint32_t index, void **slice)
{
    OF(handle)
    if (index >= gpu->slices)
        return NOT_FOUND;
    *slice = (void *)((uintptr_t)handle + SLICE * (index + 1));
    return OK;
}

answer nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **handle)
{
    OF_SLICE(slice)
    *handle = (void *)((uintptr_t)slice % SLICE);
    return slice_of(slice) ? OK : INVALID;
}

answer nvmlDeviceGetIndex(void *handle, uint32_t *index) { OF(handle) *index = (uint32_t)(gpu - state->device); return OK; }

answer nvmlDeviceGetUUID(void *handle, char *uuid, uint32_t room)
{
    OF_SLICE(handle)
    char own[96];
    name_of(gpu, slice_of(handle), own, sizeof own);
    return text(uuid, room, own);
}

answer nvmlDeviceGetName(void *handle, char *name, uint32_t room)
{
    OF_SLICE(handle)
    char own[112];
    snprintf(own, sizeof own, "%.95s%s", gpu->name, slice_of(handle) ? " MIG 1g.10gb" : "");
    return text(name, room, own);
}

answer nvmlDeviceGetArchitecture(void *handle, uint32_t *found) { OF(handle) *found = gpu->architecture; return OK; }

answer nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
    OF(handle)
    *major = (int)gpu->major;
    *minor = (int)gpu->minor;
    return OK;
}

struct memory { unsigned long long total, free, used; };

answer nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory)
{
    OF_SLICE(handle)
    if (!gpu->memory)
        return UNSUPPORTED;
    uint64_t own = slice_of(handle) ? gpu->memory / 8 : gpu->memory;
    *memory = (struct memory){own, own, 0};
    return OK;
}

static answer mode(uint32_t value, uint32_t *now, uint32_t *next)
{
    if (value > 1)
        return UNSUPPORTED;
    *now = *next = value;
    return OK;
}

answer nvmlDeviceGetMigMode(void *handle, uint32_t *now, uint32_t *next) { OF(handle) return mode(gpu->mig, now, next); }
answer nvmlDeviceGetEccMode(void *handle, uint32_t *now, uint32_t *next) { OF(handle) return mode(gpu->ecc, now, next); }
answer nvmlDeviceGetPersistenceMode(void *handle, uint32_t *on) { OF(handle) *on = gpu->persistent; return OK; }

struct process { uint32_t pid; unsigned long long memory; uint32_t instance, compute; };

static answer processes(const struct device *gpu, uint32_t *count, struct process *found)
{
    uint32_t there = 0;
    while (there < PROCESSES && gpu->processes[there])
        there++;
    if (there > *count || (there && !found)) {
        *count = there;
        return TOO_SMALL;
    }
    for (uint32_t k = 0; k < there; k++)
        found[k] = (struct process){gpu->processes[k], 1u << 20, ~0u, ~0u};
    *count = there;
    return OK;
}

answer nvmlDeviceGetComputeRunningProcesses_v3(void *handle, uint32_t *count, struct process *found) { OF(handle) return processes(gpu, count, found); }
answer nvmlDeviceGetComputeRunningProcesses_v2(void *handle, uint32_t *count, struct process *found) { OF(handle) return processes(gpu, count, found); }

/* drivers before 450 have only this name, and a shorter entry */
struct old_process { uint32_t pid; unsigned long long memory; };

answer nvmlDeviceGetComputeRunningProcesses(void *handle, uint32_t *count, struct old_process *found)
{
    OF(handle)
    struct process now[PROCESSES];
    uint32_t room = *count < PROCESSES ? *count : PROCESSES;
    refused = processes(gpu, &room, found ? now : NULL);
    *count = room;
    for (uint32_t k = 0; !refused && k < room; k++)
        found[k] = (struct old_process){now[k].pid, now[k].memory};
    return refused;
}

struct pci { char legacy[16]; uint32_t domain, bus, device, id, subsystem; char bus_id[32]; };

answer nvmlDeviceGetPciInfo_v3(void *handle, struct pci *info)
{
    OF(handle)
    memset(info, 0, sizeof *info);
    info->bus = 0x3b + (uint32_t)(gpu - state->device);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return OK;
}

answer nvmlDeviceGetCpuAffinity(void *handle, uint32_t size, unsigned long *set)
{
    OF(handle)
    memset(set, 0, size * sizeof *set);
    set[0] = 0x5; /* CPUs 0 and 2 */
    return OK;
}

/* --- reading --- */

static uint32_t bounded(uint32_t value, const uint32_t *limits, const struct device *gpu)
{
    if (!limits[1])
        return value;
    uint32_t low = limits[0] == TDP ? gpu->sm_base : limits[0], high = limits[1] == TDP ? gpu->sm_base : limits[1];
    if (low != UNLIMITED && value < low)
        value = low;
    return high != UNLIMITED && value > high ? high : value;
}

static uint32_t sm_clock(const struct device *gpu)
{
    uint32_t wanted = gpu->busy ? gpu->sm_highest : gpu->sm_lowest;
    if (gpu->has_application && gpu->busy && gpu->application[1] < wanted)
        wanted = gpu->application[1];
    wanted = bounded(wanted, gpu->locked_sm, gpu);
    return gpu->reasons & SLOWED && gpu->sm_slowed && gpu->sm_slowed < wanted ? gpu->sm_slowed : wanted;
}

static uint32_t memory_clock(const struct device *gpu)
{
    return bounded(gpu->has_application ? gpu->application[0] : gpu->memory_clocks[0], gpu->locked_memory, gpu);
}

answer nvmlDeviceGetClockInfo(void *handle, uint32_t kind, uint32_t *mhz)
{
    OF(handle)
    *mhz = kind == MEMORY ? memory_clock(gpu) : sm_clock(gpu);
    return kind <= MEMORY ? OK : UNSUPPORTED;
}

answer nvmlDeviceGetMaxClockInfo(void *handle, uint32_t kind, uint32_t *mhz)
{
    OF(handle)
    *mhz = kind == MEMORY ? gpu->memory_clocks[0] : gpu->sm_highest;
    return kind <= MEMORY ? OK : UNSUPPORTED;
}

static answer application(const struct device *gpu, const uint32_t *pair, uint32_t kind, uint32_t *mhz)
{
    if (!gpu->has_application || kind > MEMORY)
        return UNSUPPORTED;
    *mhz = kind == MEMORY ? pair[0] : pair[1];
    return OK;
}

answer nvmlDeviceGetApplicationsClock(void *handle, uint32_t kind, uint32_t *mhz) { OF(handle) return application(gpu, gpu->application, kind, mhz); }
answer nvmlDeviceGetDefaultApplicationsClock(void *handle, uint32_t kind, uint32_t *mhz) { OF(handle) return application(gpu, gpu->application_default, kind, mhz); }

answer nvmlDeviceGetSupportedMemoryClocks(void *handle, uint32_t *count, uint32_t *found)
{
    OF(handle)
    uint32_t there = 0;
    while (there < STATES && gpu->memory_clocks[there])
        there++;
    answer fits = there > *count ? TOO_SMALL : OK;
    *count = there;
    if (!fits && found)
        memcpy(found, gpu->memory_clocks, there * sizeof *found);
    return there ? fits : UNSUPPORTED;
}

static int has_memory_clock(const struct device *gpu, uint32_t mhz)
{
    for (int k = 0; k < STATES && gpu->memory_clocks[k]; k++)
        if (gpu->memory_clocks[k] == mhz)
            return 1;
    return 0;
}

answer nvmlDeviceGetSupportedGraphicsClocks(void *handle, uint32_t memory, uint32_t *count, uint32_t *found)
{
    OF(handle)
    if (!gpu->sm_step)
        return UNSUPPORTED;
    if (!has_memory_clock(gpu, memory))
        return NOT_FOUND;
    uint32_t there = (gpu->sm_highest - gpu->sm_lowest) / gpu->sm_step + 1;
    answer fits = there > *count ? TOO_SMALL : OK;
    *count = there;
    for (uint32_t k = 0; !fits && found && k < there; k++)
        found[k] = gpu->sm_highest - k * gpu->sm_step;
    return fits;
}

static uint64_t reasons(const struct device *gpu)
{
    int limited = gpu->busy && gpu->has_application && gpu->application[1] < gpu->sm_highest && !gpu->locked_sm[1];
    return gpu->reasons | (gpu->busy ? 0 : 1) | (limited ? 2 : 0);
}

answer nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *mask) { OF(handle) *mask = reasons(gpu); return OK; }
answer nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *mask) { OF(handle) *mask = reasons(gpu); return OK; }
answer nvmlDeviceGetSupportedClocksEventReasons(void *handle, unsigned long long *mask) { OF(handle) *mask = 0x1ff; return OK; }
answer nvmlDeviceGetPowerUsage(void *handle, uint32_t *milliwatts) { OF(handle) *milliwatts = gpu->power; return OK; }

answer nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules)
{
    OF(handle)
    *millijoules = gpu->energy;
    return gpu->architecture >= VOLTA ? OK : UNSUPPORTED;
}

struct temperature { uint32_t version, sensor; int celsius; };

answer nvmlDeviceGetTemperatureV(void *handle, struct temperature *found)
{
    OF(handle)
    found->celsius = (int)gpu->celsius;
    return OK;
}

answer nvmlDeviceGetTemperature(void *handle, uint32_t sensor, uint32_t *celsius) { OF(handle) *celsius = gpu->celsius; return sensor ? INVALID : OK; }

struct field { uint32_t id, scope; int64_t timestamp, latency; uint32_t type; answer answer; union { double d; unsigned long long ull; } value; };

answer nvmlDeviceGetFieldValues(void *handle, int count, struct field *fields)
{
    static const uint32_t known[FIELDS] = {74, 76, 269, 270, 271};
    OF(handle)
    for (int k = 0; k < count; k++) {
        fields[k].answer = UNSUPPORTED;
        for (int n = 0; n < FIELDS; n++)
            if (fields[k].id == known[n]) {
                fields[k].answer = OK;
                fields[k].type = 3; /* unsigned long long */
                fields[k].value.ull = gpu->counters[n];
            }
    }
    return OK;
}

/* --- setting --- */

static answer noted(const struct device *gpu, const char *name, uint32_t a, uint32_t b, answer code)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t place = __atomic_fetch_add(&state->entries, 1, __ATOMIC_SEQ_CST) % ENTRIES;
    struct entry *entry = &state->log[place];
    *entry = (struct entry){(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, (uint32_t)getpid(), gpu ? (uint32_t)(gpu - state->device) : ~0u, code, a, b, 0, {0}};
    strncpy(entry->name, name, sizeof entry->name - 1);
    return code;
}

static answer may_set(const struct device *gpu, const char *name)
{
    answer refused = by_rule(name);
    if (refused)
        return refused;
    if (!gpu)
        return INVALID;
    if (gpu->lost)
        return LOST;
    return state->only_root && !getenv("NVML_STANDIN_ROOT") ? NO_PERMISSION : OK;
}

#define SETTING(handle, a, b)                                                                                          \
    struct device *gpu = of(handle);                                                                                   \
    const uint32_t one = (a), two = (b);                                                                               \
    answer refused = may_set(gpu, __func__);                                                                           \
    if (refused)                                                                                                       \
        return refused == UNINITIALIZED ? refused : noted(gpu, __func__, one, two, refused);
#define NOTED(code) noted(gpu, __func__, one, two, (code))

static int symbolic(uint32_t mhz) { return mhz == TDP || mhz == UNLIMITED; }

answer nvmlDeviceSetGpuLockedClocks(void *handle, uint32_t low, uint32_t high)
{
    SETTING(handle, low, high)
    if (gpu->architecture < VOLTA)
        return NOTED(UNSUPPORTED);
    if (symbolic(low) != symbolic(high) || (!symbolic(low) && low > high))
        return NOTED(INVALID);
    gpu->locked_sm[0] = low;
    gpu->locked_sm[1] = high;
    return NOTED(OK);
}

answer nvmlDeviceResetGpuLockedClocks(void *handle)
{
    SETTING(handle, 0, 0)
    if (gpu->architecture < VOLTA)
        return NOTED(UNSUPPORTED);
    gpu->locked_sm[0] = gpu->locked_sm[1] = 0;
    return NOTED(OK);
}

answer nvmlDeviceSetMemoryLockedClocks(void *handle, uint32_t low, uint32_t high)
{
    SETTING(handle, low, high)
    if (gpu->architecture < AMPERE)
        return NOTED(UNSUPPORTED);
    if (low > high)
        return NOTED(INVALID);
    gpu->locked_memory[0] = low;
    gpu->locked_memory[1] = high;
    return NOTED(OK);
}

answer nvmlDeviceResetMemoryLockedClocks(void *handle)
{
    SETTING(handle, 0, 0)
    if (gpu->architecture < AMPERE)
        return NOTED(UNSUPPORTED);
    gpu->locked_memory[0] = gpu->locked_memory[1] = 0;
    return NOTED(OK);
}

answer nvmlDeviceSetApplicationsClocks(void *handle, uint32_t memory, uint32_t sm)
{
    SETTING(handle, memory, sm)
    if (!gpu->has_application)
        return NOTED(UNSUPPORTED);
    if (!has_memory_clock(gpu, memory) || sm < gpu->sm_lowest || sm > gpu->sm_highest)
        return NOTED(INVALID);
    gpu->application[0] = memory;
    gpu->application[1] = sm;
    return NOTED(OK);
}

answer nvmlDeviceResetApplicationsClocks(void *handle)
{
    SETTING(handle, 0, 0)
    if (!gpu->has_application)
        return NOTED(UNSUPPORTED);
    memcpy(gpu->application, gpu->application_default, sizeof gpu->application);
    return NOTED(OK);
}

answer nvmlDeviceSetPersistenceMode(void *handle, uint32_t on)
{
    SETTING(handle, on, 0)
    gpu->persistent = on;
    return NOTED(OK);
}
