# The image of Outrider: one static binary, no shell, not root. `make image` builds the last stage alone, with a binary from
# this machine in place of the stage `build`; it must therefore be the only thing that the last stage takes from it.
#
# For arm64, which was not tried: docker build --build-arg TARGET=aarch64-unknown-linux-gnu --platform linux/arm64 .
FROM rust:1-bookworm AS build
ARG TARGET=x86_64-unknown-linux-gnu
ARG COMMIT=
WORKDIR /outrider
COPY . .
RUN OUTRIDER_COMMIT="$COMMIT" make static TARGET="$TARGET" && cp "target/$TARGET/release/outrider" /static

FROM scratch
COPY --from=build /static /outrider
# What bodies took goes back to the system, those of many connections at one time too: glibc would otherwise raise these bounds to twice the
# largest block that was freed, and keep what is below them. Without AVX-512, as glibc compares texts with it in a way that takes some
# processors 0.4 microseconds for an empty one: a body of the shortest elements would take four times as long.
ENV GLIBC_TUNABLES=glibc.malloc.mmap_threshold=32768:glibc.malloc.trim_threshold=131072:glibc.cpu.hwcaps=-AVX512F,-AVX512VL
USER 65532:65532
ENTRYPOINT ["/outrider"]
CMD ["serve"]
