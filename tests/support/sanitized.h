// SANITIZED is 1 in a build with ASan or TSan, which is several times slower and cannot be loaded by other programs.
#pragma once

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
