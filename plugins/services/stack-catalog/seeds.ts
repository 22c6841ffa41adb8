import { stackSchema, type NamedStack } from './schema.js'

/** Each of the three brings embeddings and reranking along; their engine is what the device implies. */
const capabilities = [
  { child: 'embed', device: 'gpu-rocm', model: 'qwen3-embedding-0-6b-q8-0' },
  { child: 'rerank', device: 'gpu-rocm', model: 'bge-reranker-v2-m3-q4_k_m' }
]

const rows = {
  saber: {
    name: 'Saber',
    description: 'A fast MoE model for agents, a small one for chores',
    author: 'svc',
    icon: 'sword',
    tags: ['agentic', 'moe', 'fast'],
    slots: [
      {
        slot: 'agent', model: 'qwen3-6-35b-a3b-nsc-ace-saber-mtp-f16-to-rocmfp4-strix-lean', device: 'gpu-rocm', profile: 'rocm', mtp: true,
        capabilities
      },
      { slot: 'utility', model: 'gemma-4-12b-it-ud-q4-k-xl', device: 'gpu-vulkan', profile: 'vulkan' }
    ]
  },
  forge: {
    name: 'Forge',
    description: 'Two coders: a large one to write, a small one to help',
    author: 'svc',
    icon: 'hammer',
    tags: ['coding', 'developer'],
    slots: [
      { slot: 'agent', model: 'qwopus3-6-27b-coder-mtp-q6-k', device: 'gpu-rocm', profile: 'rocm', mtp: true, capabilities },
      { slot: 'utility', model: 'qwopus3-5-4b-coder-mtp-q6-k', device: 'gpu-vulkan', profile: 'vulkan', mtp: true }
    ]
  },
  pi: {
    name: 'Pi',
    description: 'A helper that keeps memory tidy and contexts short',
    author: 'svc',
    icon: 'pi',
    tags: ['support', 'memory', 'compaction'],
    slots: [
      {
        slot: 'utility', model: 'chadrock3-6-27b-pi-agent-mtp-rocmfp4-strix-lean', device: 'gpu-rocm', profile: 'rocm', mtp: true,
        capabilities
      },
      { slot: 'agent', model: 'gemma-4-12b-it-ud-q4-k-xl', device: 'gpu-vulkan', profile: 'vulkan' }
    ]
  }
}

/** Built in: the code wins over a table of the same slug in stacks.toml. */
export const seedStacks: ReadonlyMap<string, NamedStack> = new Map(Object.entries(rows).map(([slug, row]) =>
  [slug, Object.freeze({ ...stackSchema.parse(row), slug, seed: true })]))
