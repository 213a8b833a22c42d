// What clang lacks without ROCm's headers to compile the text of a kernel for a device of AMD. It is for looking at the
// instructions; hiprtc brings its own.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(lanes) __attribute__((amdgpu_flat_work_group_size(1, lanes)))

struct HipClangThread {
    struct X {
        __device__ operator unsigned() const { return __builtin_amdgcn_workitem_id_x(); }
    } x;
};

struct HipClangBlock {
    struct X {
        __device__ operator unsigned() const { return __builtin_amdgcn_workgroup_id_x(); }
    } x;
    struct Y {
        __device__ operator unsigned() const { return __builtin_amdgcn_workgroup_id_y(); }
    } y;
};

struct HipClangGrid {
    struct X {
        // The first of the words that the launch puts behind the arguments.
        __device__ operator unsigned() const {
            return *(const __attribute__((address_space(4))) unsigned *)__builtin_amdgcn_implicitarg_ptr();
        }
    } x;
};

static const __device__ HipClangThread threadIdx = {};
static const __device__ HipClangBlock blockIdx = {};
static const __device__ HipClangGrid gridDim = {};

static __device__ inline void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }

static __device__ inline void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
