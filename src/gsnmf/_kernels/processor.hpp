// Which builds of the kernels this processor can run.
#pragma once

#include <string_view>

#if defined(_MSC_VER) && defined(_M_X64)
#include <array>
#include <intrin.h>
#endif

namespace gsnmf {

#if defined(_MSC_VER) && defined(_M_X64)

inline bool processor_runs(std::string_view build) {
    std::array<int, 4> basic, extended;
    __cpuidex(basic.data(), 1, 0);
    __cpuidex(extended.data(), 7, 0);
    const bool fma = basic[2] >> 12 & 1, system_saves_registers = basic[2] >> 27 & 1;
    const unsigned long long saved = system_saves_registers ? _xgetbv(0) : 0;
    const bool avx2 = fma && (extended[1] >> 5 & 1) && (saved & 0x6) == 0x6;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
    if (build == "avx2") return avx2;
    if (build == "avx512") return avx2 && (unsigned(extended[1]) & avx512) == avx512 && (saved & 0xe6) == 0xe6;
    return build == "baseline";
}

#elif defined(__x86_64__)

inline bool processor_runs(std::string_view build) {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (build == "avx2") return avx2;
    if (build == "avx512")
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return build == "baseline";
}

#else

inline bool processor_runs(std::string_view build) { return build == "baseline"; }

#endif

}  // namespace gsnmf
