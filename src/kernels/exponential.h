#pragma once

namespace flotilla::kernels {

// `Ops` is an instruction set's vector of 16 floats.
template <class Ops>
struct Exponential {
  using Vector = typename Ops::Vector;

  // 2^n * e^r, |r| <= ln 2 / 2; ln 2 in two parts, so that r is exact; a polynomial of degree 6 has
  // a relative error of 1e-7. Below -87 the result would be subnormal.
  static Vector exp(Vector x) {
    x = Ops::max(x, Ops::set(-87.0F));
    const Vector n = Ops::round(Ops::mul(x, Ops::set(1.44269504088896341F)));
    Vector r = Ops::fma(n, Ops::set(-0.693145751953125F), x);
    r = Ops::fma(n, Ops::set(-1.428606765330187e-06F), r);
    Vector p = Ops::set(1.9875691500e-4F);
    p = Ops::fma(p, r, Ops::set(1.3981999507e-3F));
    p = Ops::fma(p, r, Ops::set(8.3334519073e-3F));
    p = Ops::fma(p, r, Ops::set(4.1665795894e-2F));
    p = Ops::fma(p, r, Ops::set(1.6666665459e-1F));
    p = Ops::fma(p, r, Ops::set(5.0000001201e-1F));
    p = Ops::fma(p, Ops::mul(r, r), Ops::add(r, Ops::set(1.0F)));
    return Ops::times_power_of_2(p, n);
  }

  // 1 - 2 / (e^2x + 1); 2x is cut where that is 1 in floats.
  static Vector tanh(Vector x) {
    const Vector one = Ops::set(1.0F);
    const Vector twice = Ops::min(Ops::add(x, x), Ops::set(40.0F));
    return Ops::sub(one, Ops::div(Ops::set(2.0F), Ops::add(exp(twice), one)));
  }
};

}  // namespace flotilla::kernels
