"""The C++ library's headers for device code, as text for NVRTC: see `cyrt.jit.standard`."""

from __future__ import annotations

NUMERIC_LIMITS = """
#include <float.h>
#include <limits.h>
namespace std {
#define __CYRT_F static constexpr __host__ __device__
template<class T> struct numeric_limits {
    static constexpr bool is_specialized = false;
};
template<class T> struct numeric_limits<const T> : numeric_limits<T> { };
template<class T> struct numeric_limits<volatile T> : numeric_limits<T> { };
template<class T> struct numeric_limits<const volatile T> : numeric_limits<T> { };
#define __CYRT_WHOLE(LOW, HIGH, ...) template<> struct numeric_limits<__VA_ARGS__> { \\
    typedef __VA_ARGS__ T; \\
    static constexpr bool is_specialized = true, is_integer = true, is_exact = true, \\
        is_signed = T(-1) < T(1), is_bounded = true, is_modulo = !is_signed, is_iec559 = false, \\
        has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false; \\
    static constexpr int radix = 2, digits = sizeof(T) * 8 - is_signed, \\
        digits10 = digits * 30103l / 100000, max_digits10 = 0, min_exponent = 0, \\
        max_exponent = 0; \\
    __CYRT_F T min() noexcept { return LOW; } \\
    __CYRT_F T lowest() noexcept { return LOW; } \\
    __CYRT_F T max() noexcept { return HIGH; } \\
    __CYRT_F T epsilon() noexcept { return 0; } \\
    __CYRT_F T infinity() noexcept { return 0; } \\
    __CYRT_F T quiet_NaN() noexcept { return 0; } };
__CYRT_WHOLE(CHAR_MIN, CHAR_MAX, char)
__CYRT_WHOLE(SCHAR_MIN, SCHAR_MAX, signed char)
__CYRT_WHOLE(0, UCHAR_MAX, unsigned char)
__CYRT_WHOLE(SHRT_MIN, SHRT_MAX, short)
__CYRT_WHOLE(0, USHRT_MAX, unsigned short)
__CYRT_WHOLE(INT_MIN, INT_MAX, int)
__CYRT_WHOLE(0, UINT_MAX, unsigned int)
__CYRT_WHOLE(LONG_MIN, LONG_MAX, long)
__CYRT_WHOLE(0, ULONG_MAX, unsigned long)
__CYRT_WHOLE(LLONG_MIN, LLONG_MAX, long long)
__CYRT_WHOLE(0, ULLONG_MAX, unsigned long long)
template<> struct numeric_limits<bool> {
    static constexpr bool is_specialized = true, is_integer = true, is_signed = false;
    static constexpr int digits = 1;
    __CYRT_F bool min() noexcept { return false; }
    __CYRT_F bool lowest() noexcept { return false; }
    __CYRT_F bool max() noexcept { return true; }
};
#define __CYRT_REAL(T, P, INF, QUIET, SIGNAL) template<> struct numeric_limits<T> { \\
    static constexpr bool is_specialized = true, is_integer = false, is_exact = false, \\
        is_signed = true, is_bounded = true, is_modulo = false, is_iec559 = true, \\
        has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true; \\
    static constexpr int radix = 2, digits = P##_MANT_DIG, digits10 = P##_DIG, \\
        max_digits10 = P##_DECIMAL_DIG, min_exponent = P##_MIN_EXP, \\
        max_exponent = P##_MAX_EXP, min_exponent10 = P##_MIN_10_EXP, \\
        max_exponent10 = P##_MAX_10_EXP; \\
    __CYRT_F T min() noexcept { return P##_MIN; } \\
    __CYRT_F T lowest() noexcept { return -P##_MAX; } \\
    __CYRT_F T max() noexcept { return P##_MAX; } \\
    __CYRT_F T epsilon() noexcept { return P##_EPSILON; } \\
    __CYRT_F T round_error() noexcept { return T(0.5); } \\
    __CYRT_F T denorm_min() noexcept { return P##_TRUE_MIN; } \\
    __CYRT_F T infinity() noexcept { return __builtin_bit_cast(T, INF); } \\
    __CYRT_F T quiet_NaN() noexcept { return __builtin_bit_cast(T, QUIET); } \\
    __CYRT_F T signaling_NaN() noexcept { return __builtin_bit_cast(T, SIGNAL); } };
__CYRT_REAL(float, FLT, 0x7f800000, 0x7fc00000, 0x7fa00000)
__CYRT_REAL(double, DBL, 0x7ff0000000000000ll, 0x7ff8000000000000ll, 0x7ff4000000000000ll)
#undef __CYRT_WHOLE
#undef __CYRT_REAL
#undef __CYRT_F
}
"""

_QUESTIONS = [
    "is_enum",
    "is_class",
    "is_union",
    "is_trivially_copyable",
    "is_trivial",
    "is_standard_layout",
    "is_empty",
    "is_final",
    "is_abstract",
    "is_polymorphic",
]
_ANSWERS = [
    "is_void",
    "is_integral",
    "is_floating_point",
    "is_arithmetic",
    "is_signed",
    "is_unsigned",
    "is_pointer",
    "is_array",
    "is_const",
    "is_volatile",
    "is_reference",
    "is_lvalue_reference",
    "is_rvalue_reference",
    "is_function",
    "is_fundamental",
    "is_scalar",
]
_ALTERED = [
    "remove_const",
    "remove_volatile",
    "remove_cv",
    "remove_reference",
    "remove_cvref",
    "remove_pointer",
    "remove_extent",
    "add_const",
    "add_pointer",
    "add_lvalue_reference",
    "add_rvalue_reference",
    "decay",
    "make_signed",
    "make_unsigned",
    "underlying_type",
]
_PAIRED = ["is_same", "is_base_of", "is_convertible", "is_assignable"]


def _type_traits() -> str:
    text = """
#include <stddef.h>
namespace std {
template<class T, T v> struct integral_constant {
    typedef T value_type; typedef integral_constant type;
    static constexpr T value = v;
    constexpr __host__ __device__ operator T() const noexcept { return v; }
    constexpr __host__ __device__ T operator()() const noexcept { return v; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template<class, class> struct is_same : false_type { };
template<class T> struct is_same<T, T> : true_type { };
template<bool b> using bool_constant = integral_constant<bool, b>;
template<bool, class T = void> struct enable_if { };
template<class T> struct enable_if<true, T> { typedef T type; };
template<bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template<bool, class A, class> struct conditional { typedef A type; };
template<class A, class B> struct conditional<false, A, B> { typedef B type; };
template<bool b, class A, class B> using conditional_t = typename conditional<b, A, B>::type;
template<class...> using void_t = void;
template<class T> struct type_identity { typedef T type; };
template<class T> struct remove_const { typedef T type; };
template<class T> struct remove_const<const T> { typedef T type; };
template<class T> struct remove_volatile { typedef T type; };
template<class T> struct remove_volatile<volatile T> { typedef T type; };
template<class T> struct remove_cv : remove_const<typename remove_volatile<T>::type> { };
template<class T> struct remove_reference { typedef T type; };
template<class T> struct remove_reference<T&> { typedef T type; };
template<class T> struct remove_reference<T&&> { typedef T type; };
template<class T> struct remove_cvref : remove_cv<typename remove_reference<T>::type> { };
template<class T> struct __cyrt_pointee { typedef void type; };
template<class T> struct __cyrt_pointee<T*> { typedef T type; };
template<class T> struct is_void : is_same<void, typename remove_cv<T>::type> { };
template<class T, bool = is_void<T>::value>
struct __cyrt_referred { typedef T& left; typedef T&& right; };
template<class T> struct __cyrt_referred<T, true> { typedef T left; typedef T right; };
template<class T> struct add_lvalue_reference { typedef typename __cyrt_referred<T>::left type; };
template<class T> struct add_rvalue_reference { typedef typename __cyrt_referred<T>::right type; };
template<class T> typename add_rvalue_reference<T>::type __host__ __device__ declval() noexcept;
template<class T> struct add_const { typedef const T type; };
template<class T> struct add_pointer { typedef typename remove_reference<T>::type* type; };
template<class T> struct remove_extent { typedef T type; };
template<class T> struct remove_extent<T[]> { typedef T type; };
template<class T, size_t n> struct remove_extent<T[n]> { typedef T type; };
template<class T> struct __cyrt_whole : false_type { };
template<class T> struct is_array : false_type { };
template<class T> struct is_array<T[]> : true_type { };
template<class T, size_t n> struct is_array<T[n]> : true_type { };
template<class T> struct is_const : false_type { };
template<class T> struct is_const<const T> : true_type { };
template<class T> struct is_volatile : false_type { };
template<class T> struct is_volatile<volatile T> : true_type { };
template<class T> struct is_lvalue_reference : false_type { };
template<class T> struct is_lvalue_reference<T&> : true_type { };
template<class T> struct is_rvalue_reference : false_type { };
template<class T> struct is_rvalue_reference<T&&> : true_type { };
template<class T> struct is_reference
    : bool_constant<is_lvalue_reference<T>::value || is_rvalue_reference<T>::value> { };
template<class T> struct is_function
    : bool_constant<!is_const<const T>::value && !is_reference<T>::value> { };
template<class T> struct __cyrt_address : false_type { };
template<class T> struct __cyrt_address<T*> : true_type { };
template<class T> struct is_pointer : __cyrt_address<typename remove_cv<T>::type> { };
template<class T, bool = is_pointer<T>::value> struct remove_pointer { typedef T type; };
template<class T> struct remove_pointer<T, true>
    : __cyrt_pointee<typename remove_cv<T>::type> { };
template<class T, bool = is_array<T>::value, bool = is_function<T>::value>
struct __cyrt_decay { typedef typename remove_cv<T>::type type; };
template<class T> struct __cyrt_decay<T, true, false> {
    typedef typename remove_extent<T>::type* type;
};
template<class T> struct __cyrt_decay<T, false, true> { typedef T* type; };
template<class T> struct decay : __cyrt_decay<typename remove_reference<T>::type> { };
template<class T> struct __cyrt_real : false_type { };
template<> struct __cyrt_real<float> : true_type { };
template<> struct __cyrt_real<double> : true_type { };
template<> struct __cyrt_real<long double> : true_type { };
template<class T> struct __cyrt_signed { };
template<class T> struct __cyrt_unsigned { };
template<> struct __cyrt_whole<bool> : true_type { };
template<> struct __cyrt_whole<wchar_t> : true_type { };
template<> struct __cyrt_whole<char16_t> : true_type { };
template<> struct __cyrt_whole<char32_t> : true_type { };
template<> struct __cyrt_whole<char> : true_type { };
template<> struct __cyrt_signed<char> { typedef signed char type; };
template<> struct __cyrt_unsigned<char> { typedef unsigned char type; };
#define __CYRT_PAIR(S, U) \\
    template<> struct __cyrt_whole<S> : true_type { }; \\
    template<> struct __cyrt_whole<U> : true_type { }; \\
    template<> struct __cyrt_signed<S> { typedef S type; }; \\
    template<> struct __cyrt_signed<U> { typedef S type; }; \\
    template<> struct __cyrt_unsigned<S> { typedef U type; }; \\
    template<> struct __cyrt_unsigned<U> { typedef U type; };
__CYRT_PAIR(signed char, unsigned char)
__CYRT_PAIR(short, unsigned short)
__CYRT_PAIR(int, unsigned int)
__CYRT_PAIR(long, unsigned long)
__CYRT_PAIR(long long, unsigned long long)
#undef __CYRT_PAIR
template<class T> struct is_integral : __cyrt_whole<typename remove_cv<T>::type> { };
template<class T> struct is_floating_point : __cyrt_real<typename remove_cv<T>::type> { };
template<class T> struct is_arithmetic
    : bool_constant<is_integral<T>::value || is_floating_point<T>::value> { };
template<class T, bool = is_arithmetic<T>::value> struct is_signed
    : bool_constant<(T(-1) < T(0))> { };
template<class T> struct is_signed<T, false> : false_type { };
template<class T> struct is_unsigned
    : bool_constant<is_arithmetic<T>::value && !is_signed<T>::value> { };
template<class T> struct is_fundamental
    : bool_constant<is_arithmetic<T>::value || is_void<T>::value> { };
template<class T> struct is_scalar
    : bool_constant<is_arithmetic<T>::value || is_pointer<T>::value || __is_enum(T)> { };
template<class T> struct make_signed : __cyrt_signed<typename remove_cv<T>::type> { };
template<class T> struct make_unsigned : __cyrt_unsigned<typename remove_cv<T>::type> { };
template<class T> struct underlying_type { typedef __underlying_type(T) type; };
template<class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> { };
template<class A, class B> struct is_convertible : bool_constant<__is_convertible_to(A, B)> { };
template<class A, class B> struct is_assignable : bool_constant<__is_assignable(A, B)> { };
template<class T, class... A> struct is_constructible
    : bool_constant<__is_constructible(T, A...)> { };
template<class T> struct alignment_of : integral_constant<size_t, alignof(T)> { };
template<class...> struct conjunction : true_type { };
template<class B, class... R> struct conjunction<B, R...>
    : conditional<bool(B::value), conjunction<R...>, false_type>::type { };
template<class...> struct disjunction : false_type { };
template<class B, class... R> struct disjunction<B, R...>
    : conditional<bool(B::value), true_type, disjunction<R...> >::type { };
template<class B> struct negation : bool_constant<!bool(B::value)> { };
template<class...> struct common_type { };
template<class T> struct common_type<T> { typedef typename decay<T>::type type; };
template<class A, class B> struct common_type<A, B> {
    typedef typename decay<decltype(true ? declval<A>() : declval<B>())>::type type;
};
template<class A, class B, class C, class... R> struct common_type<A, B, C, R...>
    : common_type<typename common_type<A, B>::type, C, R...> { };
template<class... T> using common_type_t = typename common_type<T...>::type;
"""
    for name in _QUESTIONS:
        text += f"template<class T> struct {name} : bool_constant<__{name}(T)> {{ }};\n"
    for name in _ALTERED:
        text += f"template<class T> using {name}_t = typename {name}<T>::type;\n"
    text += "#if __cplusplus >= 201703L\n"
    for name in (*_QUESTIONS, *_ANSWERS):
        text += f"template<class T> inline constexpr bool {name}_v = {name}<T>::value;\n"
    for name in _PAIRED:
        text += (
            f"template<class A, class B> inline constexpr bool {name}_v = {name}<A, B>::value;\n"
        )
    for name in ("conjunction", "disjunction", "is_constructible"):
        text += f"template<class... B> inline constexpr bool {name}_v = {name}<B...>::value;\n"
    text += "template<class B> inline constexpr bool negation_v = negation<B>::value;\n"
    return text + "#endif\n}\n"


UTILITY = """
#include <type_traits>
#if __cplusplus >= 201402L
#define __CYRT_CONSTEXPR constexpr __host__ __device__
#else
#define __CYRT_CONSTEXPR __host__ __device__
#endif
namespace std {
template<class T> __CYRT_CONSTEXPR void swap(T& a, T& b) {
    T c = static_cast<T&&>(a); a = static_cast<T&&>(b); b = static_cast<T&&>(c);
}
template<class T, class U = T> __CYRT_CONSTEXPR T exchange(T& a, U&& b) {
    T c = static_cast<T&&>(a); a = static_cast<U&&>(b); return c;
}
template<class T> constexpr __host__ __device__ const T& as_const(T& a) { return a; }
template<class A, class B> struct pair {
    typedef A first_type; typedef B second_type;
    A first; B second;
    constexpr __host__ __device__ pair() : first(), second() { }
    constexpr __host__ __device__ pair(const A& a, const B& b) : first(a), second(b) { }
    template<class C, class D>
    constexpr __host__ __device__ pair(const pair<C, D>& p) : first(p.first), second(p.second) { }
};
template<class A, class B> constexpr __host__ __device__
bool operator==(const pair<A, B>& p, const pair<A, B>& q) {
    return p.first == q.first && p.second == q.second;
}
template<class A, class B> constexpr __host__ __device__
pair<typename decay<A>::type, typename decay<B>::type> make_pair(A&& a, B&& b) {
    return pair<typename decay<A>::type, typename decay<B>::type>(a, b);
}
template<class T, T... v> struct integer_sequence {
    typedef T value_type;
    static constexpr __host__ __device__ size_t size() noexcept { return sizeof...(v); }
};
template<class, class> struct __cyrt_joined;
template<class T, T... a, T... b>
struct __cyrt_joined<integer_sequence<T, a...>, integer_sequence<T, b...> > {
    typedef integer_sequence<T, a..., T(sizeof...(a)) + b...> type;
};
template<class T, size_t n> struct __cyrt_counted
    : __cyrt_joined<typename __cyrt_counted<T, n / 2>::type,
                    typename __cyrt_counted<T, n - n / 2>::type> { };
template<class T> struct __cyrt_counted<T, 0> { typedef integer_sequence<T> type; };
template<class T> struct __cyrt_counted<T, 1> { typedef integer_sequence<T, T(0)> type; };
template<class T, T n> using make_integer_sequence = typename __cyrt_counted<T, size_t(n)>::type;
template<size_t... v> using index_sequence = integer_sequence<size_t, v...>;
template<size_t n> using make_index_sequence = make_integer_sequence<size_t, n>;
template<class... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;
}
"""

ALGORITHM = """
#include <utility>
namespace std {
template<class T> constexpr __host__ __device__ const T& min(const T& a, const T& b) {
    return b < a ? b : a;
}
template<class T> constexpr __host__ __device__ const T& max(const T& a, const T& b) {
    return a < b ? b : a;
}
template<class T, class L>
constexpr __host__ __device__ const T& min(const T& a, const T& b, L less) {
    return less(b, a) ? b : a;
}
template<class T, class L>
constexpr __host__ __device__ const T& max(const T& a, const T& b, L less) {
    return less(a, b) ? b : a;
}
template<class T>
constexpr __host__ __device__ const T& clamp(const T& a, const T& low, const T& high) {
    return a < low ? low : high < a ? high : a;
}
}
"""

ARRAY = """
#include <utility>
namespace std {
template<class T, size_t n> struct array {
    typedef T value_type; typedef size_t size_type; typedef T* iterator;
    T values[n ? n : 1];
    __CYRT_CONSTEXPR T& operator[](size_t i) { return values[i]; }
    constexpr __host__ __device__ const T& operator[](size_t i) const { return values[i]; }
    __CYRT_CONSTEXPR T& front() { return values[0]; }
    constexpr __host__ __device__ const T& front() const { return values[0]; }
    __CYRT_CONSTEXPR T& back() { return values[n - 1]; }
    constexpr __host__ __device__ const T& back() const { return values[n - 1]; }
    __CYRT_CONSTEXPR T* data() noexcept { return values; }
    constexpr __host__ __device__ const T* data() const noexcept { return values; }
    __CYRT_CONSTEXPR T* begin() noexcept { return values; }
    constexpr __host__ __device__ const T* begin() const noexcept { return values; }
    __CYRT_CONSTEXPR T* end() noexcept { return values + n; }
    constexpr __host__ __device__ const T* end() const noexcept { return values + n; }
    static constexpr __host__ __device__ size_t size() noexcept { return n; }
    static constexpr __host__ __device__ bool empty() noexcept { return n == 0; }
    __host__ __device__ void fill(const T& v) { for (size_t i = 0; i < n; ++i) values[i] = v; }
};
}
"""

TYPE_TRAITS = _type_traits()
