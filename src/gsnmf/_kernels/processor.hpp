// Which builds of the kernels this processor can run, asked of the processor itself: compilers without their own runtime
// library have no __builtin_cpu_supports.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gsnmf {

#if defined(__x86_64__) || defined(_M_X64)

// The registers eax, ebx, ecx and edx of the instruction cpuid.
inline std::array<std::uint32_t, 4> processor_features(std::uint32_t leaf) {
    std::array<std::uint32_t, 4> found{};
#if defined(_MSC_VER)
    __cpuidex(reinterpret_cast<int*>(found.data()), int(leaf), 0);
#else
    __get_cpuid_count(leaf, 0, &found[0], &found[1], &found[2], &found[3]);
#endif
    return found;
}

// Which registers the operating system saves when it switches between threads.
inline std::uint32_t saved_registers() {
#if defined(_MSC_VER)
    return std::uint32_t(_xgetbv(0));
#else
    std::uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

inline bool processor_runs(std::string_view build) {
    const std::uint32_t basic = processor_features(1)[2], extended = processor_features(7)[1];
    const bool fma = basic >> 12 & 1, saves = basic >> 27 & 1;
    const std::uint32_t saved = saves ? saved_registers() : 0;
    const bool avx2 = fma && (extended >> 5 & 1) && (saved & 0x6) == 0x6;
    const std::uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
    if (build == "avx2") return avx2;
    if (build == "avx512") return avx2 && (extended & avx512) == avx512 && (saved & 0xe6) == 0xe6;
    return build == "baseline";
}

#else

inline bool processor_runs(std::string_view build) { return build == "baseline"; }

#endif

}  // namespace gsnmf
