import type { ProviderFacts } from 'svc-gateway/plugin'

/** Images of llama.cpp's own builds. */
const images: ProviderFacts['images'] = {
  cpu: { tag: 'ghcr.io/ggml-org/llama.cpp:server' },
  vulkan: { tag: 'ghcr.io/ggml-org/llama.cpp:server-vulkan' },
  cuda: { tag: 'ghcr.io/ggml-org/llama.cpp:server-cuda' },
  rocm: { tag: 'ghcr.io/ggml-org/llama.cpp:server-rocm' }
}

/** Tuned for each device. Flags hold no model, port or context size: those come from the slot. */
const profiles: ProviderFacts['profiles'] = {
  'rocm': {
    image: 'rocm',
    flags: '-fa on -ctk q8_0 -ctv q8_0 -b 512 -ub 512 --parallel 1 --threads 8 --load-mode none',
    device_class: 'gpu',
    backend: 'rocm',
    intent: 'Default for AMD GPUs: MoE agents',
    quant: 'FP4'
  },
  'rocm-dnse': {
    image: 'rocm',
    flags: '-fa on -ctk q8_0 -ctv q8_0 -b 8192 -ub 2048 --parallel 1 --threads 16 --threads-batch 32 --load-mode none --poll 100 --poll-batch 1',
    mtp: true,
    device_class: 'gpu',
    backend: 'rocm',
    intent: 'Dense models with multi-token prediction',
    quant: 'FP4'
  },
  'rocm-moe': {
    image: 'rocm',
    flags: '-fa on -ctk q8_0 -ctv q8_0 -b 8192 -ub 2048 --parallel 1 --threads 16 --threads-batch 32 --load-mode none --poll 100 --poll-batch 1 --jinja',
    mtp: true,
    device_class: 'gpu',
    backend: 'rocm',
    intent: 'MoE models with multi-token prediction',
    quant: 'FP4'
  },
  'vulkan': {
    image: 'vulkan',
    flags: '-fa on -b 512 -ub 512 --parallel 1 --threads 8 --load-mode none',
    device_class: 'gpu',
    backend: 'vulkan',
    intent: 'Default for any GPU with Vulkan',
    quant: 'Q4_K_M'
  },
  'cuda': {
    image: 'cuda',
    flags: '-ngl 999 -fa on -b 512 -ub 512 --parallel 1 --threads 8 --load-mode none --jinja',
    device_class: 'gpu',
    backend: 'cuda',
    intent: 'NVIDIA GPUs (experimental)',
    quant: 'Q4_K_M'
  },
  'embed': {
    image: 'rocm',
    flags: '--embedding -ngl 999 -fa on -b 8192 -ub 8192 --load-mode none',
    device_class: 'gpu',
    backend: 'rocm',
    intent: 'Embeddings'
  },
  'rerank': {
    image: 'rocm',
    flags: '--reranking -ngl 999 -fa on -b 8192 -ub 8192 --load-mode none',
    device_class: 'gpu',
    backend: 'rocm',
    intent: 'Reranking'
  },
  'cpu-llm': {
    image: 'cpu',
    flags: '--threads 4 --threads-batch 8 -b 256 -ub 256 --parallel 1 --load-mode none',
    device_class: 'cpu',
    intent: 'Chat on the CPU alone',
    quant: 'Q4_K_M'
  }
}

export const facts: ProviderFacts = {
  images,
  profiles,
  aliases: ['llama-server'],
  vulkanVariable: 'GGML_VK_VISIBLE_DEVICES',
  modelFolders: [
    { folder: 'llamacpp/chat', for: ['chat', 'vision'], usual: true },
    { folder: 'llamacpp/embed', for: ['embed'], usual: true },
    { folder: 'llamacpp/rerank', for: ['rerank'], usual: true }
  ],
  defaultFor: [{ type: 'llm' }, { type: 'embedding' }, { type: 'reranking' }],
  modelNames: { embed: /bge|(^|[^a-z0-9])e5-|nomic|gte-/ }
}
