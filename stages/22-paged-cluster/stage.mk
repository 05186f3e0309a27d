# st.async came with PTX 8.1, and CUDA 12.0 has 8.0.
ALLOW_22-paged-cluster := refused-12.0
