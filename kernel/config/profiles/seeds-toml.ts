/**
 * The twelve seed profiles, in the format of profiles.toml. Images are short names of the
 * manifest. Flags hold no model, port or context size: those come from the slot and its provider.
 */
export const seedsToml = `
[profile.rocm]
image = "rocm"
flags = "-fa on -ctk q8_0 -ctv q8_0 -b 512 -ub 512 --parallel 1 --threads 8 --load-mode none"
device_class = "gpu"
backend = "rocm"
intent = "Default for AMD GPUs: MoE agents"
quant = "FP4"

[profile.rocm-dnse]
image = "rocm"
flags = "-fa on -ctk q8_0 -ctv q8_0 -b 8192 -ub 2048 --parallel 1 --threads 16 --threads-batch 32 --load-mode none --poll 100 --poll-batch 1"
mtp = true
device_class = "gpu"
backend = "rocm"
intent = "Dense models with multi-token prediction"
quant = "FP4"

[profile.rocm-moe]
image = "rocm"
flags = "-fa on -ctk q8_0 -ctv q8_0 -b 8192 -ub 2048 --parallel 1 --threads 16 --threads-batch 32 --load-mode none --poll 100 --poll-batch 1 --jinja"
mtp = true
device_class = "gpu"
backend = "rocm"
intent = "MoE models with multi-token prediction"
quant = "FP4"

[profile.vulkan]
image = "vulkan"
flags = "-fa on -b 512 -ub 512 --parallel 1 --threads 8 --load-mode none"
device_class = "gpu"
backend = "vulkan"
intent = "Default for any GPU with Vulkan"
quant = "Q4_K_M"

[profile.cuda]
image = "cuda"
flags = "-ngl 999 -fa on -b 512 -ub 512 --parallel 1 --threads 8 --load-mode none --jinja"
device_class = "gpu"
backend = "cuda"
intent = "NVIDIA GPUs (experimental)"
quant = "Q4_K_M"

[profile.embed]
image = "rocm"
flags = "--embedding -ngl 999 -fa on -b 8192 -ub 8192 --load-mode none"
device_class = "gpu"
backend = "rocm"
intent = "Embeddings"

[profile.rerank]
image = "rocm"
flags = "--reranking -ngl 999 -fa on -b 8192 -ub 8192 --load-mode none"
device_class = "gpu"
backend = "rocm"
intent = "Reranking"

[profile.tts-gpu]
image = "tts-gpu"
device_class = "gpu"
backend = "rocm"
intent = "Multilingual speech on the GPU"
quant = "BF16"

[profile.npu-rt]
image = "npu-rt"
device_class = "npu"
intent = "Chat, speech recognition and embeddings on the NPU"
quant = "W4ABF16"

[profile.tts-cpu]
image = "tts-cpu"
device_class = "cpu"
intent = "Speech on the CPU"

[profile.cpu-llm]
image = "cpu"
flags = "--threads 4 --threads-batch 8 -b 256 -ub 256 --parallel 1 --load-mode none"
device_class = "cpu"
intent = "Chat on the CPU alone"
quant = "Q4_K_M"

[profile.imagegen]
image = "imagegen"
flags = "--disable-mmap --bf16-vae --cache-none"
device_class = "img"
intent = "Image generation"
`
