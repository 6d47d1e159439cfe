/* A stand-in for libnvidia-ml.so.1, with the calls that cfglint makes. The environment says what it plays:

   FAKE_NVML       ok nov2 nomemory none notloaded nopermission mismatch lost mig migempty mixed unknown
                   noprocesses hang crash exit garbage lies many crashlate hanglate
   FAKE_NVML_GPUS  how many GPUs (1 where unset)
   FAKE_NVML_PROCESSES  what runs on the first GPU: PID:MIB pairs with commas; MIB is - where it is not told
   FAKE_NVML_LOG   a file that gets a line for each init and each shutdown

   Memory figures are an A40's, an A100-SXM4-40GB's and those of an RTX 3090 and 4090, as NVML prints them. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NO_PERMISSION 4
#define NOT_FOUND 6
#define DRIVER_NOT_LOADED 9
#define INSUFFICIENT_SIZE 7
#define FUNCTION_NOT_FOUND 13
#define GPU_IS_LOST 15
#define VERSION_MISMATCH 18
#define MIB (1024ULL * 1024ULL)

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned gpu, memory; } utilization_t;

/* A handle is a number from 1: GPUs first, MIG instances from 100. */
typedef void *device_t;

static int plays(const char *part) {
    const char *role = getenv("FAKE_NVML");
    return strcmp(role ? role : "ok", part) == 0;
}

static int is_mig(void) { return plays("mig") || plays("migempty"); }

static unsigned number(device_t device) { return (unsigned)(size_t)device; }

static void note(const char *what) {
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", what);
        fclose(log);
    }
}

/* Things a driver or its library may do, in place of an answer. */
static void misbehave(const char *when) {
    if (strcmp(when, "init") == 0) {
        if (plays("hang")) for (;;) sleep(1000);
        if (plays("crash")) raise(SIGSEGV);
        if (plays("exit")) exit(3);
    }
    if (strcmp(when, "name") == 0 && plays("crashlate")) abort();
    if (strcmp(when, "shutdown") == 0 && plays("hanglate")) for (;;) sleep(1000);
    if (plays("garbage"))
        for (int i = 0; i < 100000; i++) {
            printf("{\"problem\": \"::error::garbage\"}\n");
            fprintf(stderr, "\033[31m::error::garbage\n");
        }
    fflush(stdout);
}

static int init(void) {
    misbehave("init");
    if (plays("notloaded")) return DRIVER_NOT_LOADED;
    if (plays("nopermission")) return NO_PERMISSION;
    if (plays("mismatch")) return VERSION_MISMATCH;
    note("init");
    return OK;
}

int nvmlInit_v2(void) { return init(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return init(); }
int nvmlShutdown(void) { note("shutdown"); misbehave("shutdown"); return OK; }
const char *nvmlErrorString(int code) { return code == GPU_IS_LOST ? "GPU is lost" : "some error"; }

static int text(char *buffer, unsigned length, const char *value) {
    strncpy(buffer, value, length - 1);
    buffer[length - 1] = 0;
    return OK;
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned length) {
    return text(buffer, length, plays("lies") ? "550\033]0;title\a" : "550.54.15");
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = plays("lies") ? -7 : 12040; return OK; }
int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    const char *gpus = getenv("FAKE_NVML_GPUS");
    *count = plays("many") ? 4000000000u : plays("none") ? 0 : plays("mixed") ? 2 : gpus ? (unsigned)atoi(gpus) : 1;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device) {
    *device = (device_t)(size_t)(index + 1);
    return OK;
}

int nvmlDeviceGetName(device_t device, char *buffer, unsigned length) {
    misbehave("name");
    if (plays("lost")) return GPU_IS_LOST;
    if (plays("lies")) return text(buffer, length, "NVIDIA\033[31m A40\n::error::\xe2\x80\xae");
    if (number(device) >= 100)
        return text(buffer, length, number(device) == 100 ? "NVIDIA A100-SXM4-40GB MIG 3g.20gb" : "NVIDIA A100-SXM4-40GB MIG 1g.5gb");
    if (is_mig()) return text(buffer, length, "NVIDIA A100-SXM4-40GB");
    if (plays("mixed")) return text(buffer, length, number(device) == 1 ? "NVIDIA GeForce RTX 3090" : "NVIDIA GeForce RTX 4090");
    if (plays("unknown")) return text(buffer, length, "NVIDIA Wonder 9000");
    return text(buffer, length, "NVIDIA A40");
}

static unsigned total_mib(device_t device) {
    if (number(device) >= 100) return number(device) == 100 ? 20096 : 4864;
    if (is_mig()) return 40960;
    if (plays("mixed")) return number(device) == 1 ? 24576 : 24564;
    return 46068;
}

static unsigned reserved_mib(device_t device) {
    if (number(device) >= 100) return 0;
    if (plays("mixed")) return number(device) == 1 ? 444 : 483;
    return 582;
}

static unsigned used_mib(void) { return plays("full") ? 44000 : 1000; }

int nvmlDeviceGetMemoryInfo(device_t device, memory_t *memory) {
    if (plays("nomemory")) return NOT_SUPPORTED;
    memory->total = plays("lies") ? 1ULL << 63 : total_mib(device) * MIB;
    memory->used = used_mib() * MIB;
    memory->free = plays("lies") ? ~0ULL : memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_v2_t *memory) {
    if (plays("nov2") || plays("lies")) return FUNCTION_NOT_FOUND;
    if (plays("nomemory")) return NOT_SUPPORTED;
    if (memory->version != (sizeof(memory_v2_t) | (2u << 24))) return INVALID_ARGUMENT;
    memory->total = total_mib(device) * MIB;
    memory->reserved = reserved_mib(device) * MIB;
    memory->used = used_mib() * MIB;
    memory->free = memory->total - memory->used - memory->reserved;
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor) {
    *major = plays("lies") ? -2000000000 : plays("unknown") ? 12 : 8;
    *minor = is_mig() || plays("unknown") ? 0 : plays("mixed") && number(device) == 2 ? 9 : 6;
    return OK;
}

int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending) {
    (void)device;
    if (!is_mig()) return NOT_SUPPORTED;
    *current = *pending = 1;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count) {
    (void)device;
    *count = 7;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *instance) {
    (void)device;
    if (plays("migempty") || (index != 0 && index != 3 && index != 4)) return NOT_FOUND;
    *instance = (device_t)(size_t)(100 + index);
    return OK;
}

int nvmlDeviceGetUtilizationRates(device_t device, utilization_t *rates) {
    (void)device;
    if (is_mig()) return NOT_SUPPORTED;
    rates->gpu = plays("lies") ? 4000000000u : 37;
    rates->memory = 12;
    return OK;
}

typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_t;

/* As NVML: without room it says how much it would take. */
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, process_t *found) {
    const char *told = getenv("FAKE_NVML_PROCESSES");
    unsigned wanted = 0, room = *count;
    if (plays("noprocesses")) return NOT_SUPPORTED;
    for (const char *at = told; at && *at && number(device) == 1; wanted++) {
        char *end;
        unsigned long pid = strtoul(at, &end, 10);
        int unknown = end[1] == '-';
        unsigned long long mib = unknown ? 0 : strtoull(end + 1, &end, 10);
        if (unknown) end += 2;
        if (found && wanted < room) {
            found[wanted].pid = (unsigned)pid;
            found[wanted].used = unknown ? ~0ULL : mib * MIB;
            found[wanted].gpu_instance = found[wanted].compute_instance = is_mig() ? 1 : ~0u;
        }
        at = *end == ',' ? end + 1 : end;
    }
    *count = wanted;
    return wanted == 0 ? OK : found && wanted <= room ? OK : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device_t device, unsigned *count, process_t *found) {
    (void)device;
    (void)found;
    *count = 0;
    return OK;
}
