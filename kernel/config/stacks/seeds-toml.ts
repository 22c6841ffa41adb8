/**
 * The three seed stacks, in the format of stacks.toml. Each brings embeddings and
 * reranking along; their engine is what the device implies.
 */
const retrieval = `
capabilities = [
  { child = "embed", device = "gpu-rocm", model = "qwen3-embedding-0-6b-q8-0" },
  { child = "rerank", device = "gpu-rocm", model = "bge-reranker-v2-m3-q4_k_m" }
]`

export const stackSeedsToml = `
[stack.saber]
name = "Saber"
description = "A fast MoE model for agents, a small one for chores"
author = "svc"
icon = "sword"
tags = ["agentic", "moe", "fast"]

[[stack.saber.slots]]
slot = "agent"
model = "qwen3-6-35b-a3b-nsc-ace-saber-mtp-f16-to-rocmfp4-strix-lean"
device = "gpu-rocm"
profile = "rocm"
mtp = true${retrieval}

[[stack.saber.slots]]
slot = "utility"
model = "gemma-4-12b-it-ud-q4-k-xl"
device = "gpu-vulkan"
profile = "vulkan"

[stack.forge]
name = "Forge"
description = "Two coders: a large one to write, a small one to help"
author = "svc"
icon = "hammer"
tags = ["coding", "developer"]

[[stack.forge.slots]]
slot = "agent"
model = "qwopus3-6-27b-coder-mtp-q6-k"
device = "gpu-rocm"
profile = "rocm"
mtp = true${retrieval}

[[stack.forge.slots]]
slot = "utility"
model = "qwopus3-5-4b-coder-mtp-q6-k"
device = "gpu-vulkan"
profile = "vulkan"
mtp = true

[stack.pi]
name = "Pi"
description = "A helper that keeps memory tidy and contexts short"
author = "svc"
icon = "pi"
tags = ["support", "memory", "compaction"]

[[stack.pi.slots]]
slot = "utility"
model = "chadrock3-6-27b-pi-agent-mtp-rocmfp4-strix-lean"
device = "gpu-rocm"
profile = "rocm"
mtp = true${retrieval}

[[stack.pi.slots]]
slot = "agent"
model = "gemma-4-12b-it-ud-q4-k-xl"
device = "gpu-vulkan"
profile = "vulkan"
`
