// Stands in for a function of mbed TLS: certificates.c.
#pragma once

__attribute__((visibility("default"))) int mbedtls_x509_crt_parse_file(void *chain, const char *path);
