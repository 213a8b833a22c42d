// HIP on a CPU: behind this header the text of a kernel is C++ that a shared library is made of, and `hip_cpu_run` runs a
// whole grid of it.
//
// Every lane of a workgroup is a fiber. A lane runs until it comes to a meeting, which is a barrier or a shuffle, and then
// the next one runs; in one of two orders, so that a result that depends on the order shows. Lanes that come to different
// meetings, or of which some leave while others wait, are reported. Workgroups run one after the other.
//
// A library is made of one file. Many kernels fit in it: each text in a namespace of its own, entry points with different
// names. Everything is `static`, since what is shared between files of a library is shared between libraries too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __shared__ static
#define __launch_bounds__(lanes)

namespace hip_cpu {

struct Dim {
    unsigned x, y, z;
};

constexpr unsigned most_lanes = 256;
constexpr unsigned most_arguments = 64;
constexpr std::size_t stack_bytes = 64 << 10;

enum class Place { running, barrier, shuffle, left };

struct Lane {
    Place place;
    // Meetings so far.
    unsigned meetings;
    // What it offers in shuffles, by the parity of their number: a lane that is one ahead overwrites nothing.
    unsigned offered[2];
#if defined(__x86_64__)
    void *stack;
#else
    ucontext_t context;
#endif
};

static Lane lanes[most_lanes];
static unsigned current;
alignas(16) static unsigned char stacks[most_lanes][stack_bytes];
static char message[160];

// The launch that runs.
static void *kernel;
static void **arguments;
static unsigned argument_count;

#if defined(__x86_64__)
static void *scheduler;

// Saves the registers that a call keeps, and goes on where `to` was saved.
__attribute__((naked, noinline)) static void exchange_stacks(void **, void *) {
    asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
}
#else
static ucontext_t scheduler;
#endif

// From the current lane to the scheduler.
static void leave_lane() {
#if defined(__x86_64__)
    exchange_stacks(&lanes[current].stack, scheduler);
#else
    swapcontext(&lanes[current].context, &scheduler);
#endif
}

// From the scheduler to the current lane.
static void enter_lane() {
#if defined(__x86_64__)
    exchange_stacks(&scheduler, lanes[current].stack);
#else
    swapcontext(&scheduler, &lanes[current].context);
#endif
}

template <std::size_t> using Argument = void *;

template <std::size_t... I> static void call(std::index_sequence<I...>) {
    reinterpret_cast<void (*)(Argument<I>...)>(kernel)(arguments[I]...);
}

template <unsigned count> static void call_with() {
    if (argument_count == count) {
        call(std::make_index_sequence<count>());
    } else if constexpr (count < most_arguments) {
        call_with<count + 1>();
    }
}

// What a fiber does.
static void run_lane() {
    call_with<1>();
    lanes[current].place = Place::left;
    leave_lane();
}

static void prepare_lane(Lane &lane, unsigned char *stack) {
    lane = Lane{};
#if defined(__x86_64__)
    // As if `run_lane` had been called from nowhere, below it the six registers.
    void **top = reinterpret_cast<void **>(stack + stack_bytes);
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void *>(&run_lane);
    lane.stack = top - 8;
#else
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = stack;
    lane.context.uc_stack.ss_size = stack_bytes;
    lane.context.uc_link = nullptr;
    makecontext(&lane.context, &run_lane, 0);
#endif
}

// The current lane waits until all others have come.
__attribute__((noinline)) static void meet(Place place) {
    asm volatile("" ::: "memory");
    lanes[current].place = place;
    lanes[current].meetings += 1;
    leave_lane();
    asm volatile("" ::: "memory");
}

static unsigned shuffled(unsigned x, unsigned distance) {
    const unsigned lane = current;
    const unsigned parity = lanes[lane].meetings & 1u;
    lanes[lane].offered[parity] = x;
    meet(Place::shuffle);
    return lanes[lane ^ distance].offered[parity];
}

static const char *name_of(Place place) {
    switch (place) {
    case Place::barrier: return "is at a barrier";
    case Place::shuffle: return "is at a shuffle";
    default: return "has left";
    }
}

} // namespace hip_cpu

static hip_cpu::Dim threadIdx, blockIdx, blockDim, gridDim;

// Lanes run one at a time, so what one wrote the others see.
static inline void __threadfence_block() {}

static inline void __syncthreads() { hip_cpu::meet(hip_cpu::Place::barrier); }

static inline unsigned __shfl_xor(unsigned x, unsigned distance) { return hip_cpu::shuffled(x, distance); }

// The reason of the last failure.
extern "C" __attribute__((visibility("default"))) const char *hip_cpu_message() { return hip_cpu::message; }

// Runs a kernel over `width` times `height` workgroups with pointers as arguments. Lanes and workgroups run ascending, or
// descending if `reversed`. Gives 0, or 1 with a message where the lanes of a workgroup part; not for several threads at once.
extern "C" __attribute__((visibility("default"))) int hip_cpu_run(
    void *kernel, unsigned lanes, unsigned width, unsigned height, int reversed, void **arguments, unsigned count
) {
    using namespace hip_cpu;
    if (lanes == 0 || lanes > most_lanes || count == 0 || count > most_arguments) {
        std::snprintf(message, sizeof message, "%u lanes, %u arguments", lanes, count);
        return 1;
    }
    hip_cpu::kernel = kernel;
    hip_cpu::arguments = arguments;
    argument_count = count;
    blockDim = Dim{lanes, 1, 1};
    gridDim = Dim{width, height, 1};
    const std::uint64_t groups = std::uint64_t(width) * height;
    for (std::uint64_t i = 0; i < groups; i++) {
        const std::uint64_t group = reversed ? groups - 1 - i : i;
        blockIdx = Dim{unsigned(group % width), unsigned(group / width), 0};
        for (unsigned lane = 0; lane < lanes; lane++) {
            prepare_lane(hip_cpu::lanes[lane], stacks[lane]);
        }
        do {
            for (unsigned j = 0; j < lanes; j++) {
                current = reversed ? lanes - 1 - j : j;
                threadIdx = Dim{current, 0, 0};
                enter_lane();
            }
            for (unsigned lane = 1; lane < lanes; lane++) {
                if (hip_cpu::lanes[lane].place != hip_cpu::lanes[0].place) {
                    std::snprintf(
                        message, sizeof message, "workgroup %llu: lane 0 %s, lane %u %s",
                        static_cast<unsigned long long>(group), name_of(hip_cpu::lanes[0].place), lane,
                        name_of(hip_cpu::lanes[lane].place)
                    );
                    return 1;
                }
            }
        } while (hip_cpu::lanes[0].place != Place::left);
    }
    return 0;
}
