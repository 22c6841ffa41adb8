import type { CuratedModel } from './ref.js'

const blank = {
  mmproj_file: '', notes: '', backend: '', model_class: '', comfyui_subdir: '', bundle_only: false, recommended_slot: 'agent', tags: []
} as const

const apache = { license: 'apache-2.0', license_url: 'https://www.apache.org/licenses/LICENSE-2.0' } as const
const mit = { license: 'mit', license_url: 'https://opensource.org/license/mit' } as const

/** Models of text: for chat, for vectors, for ranking. Sizes and names are those of the repositories. */
export const curatedText: readonly CuratedModel[] = [
  {
    ...blank, ...apache, id: 'qwen3-0.6b', display_name: 'Qwen3 0.6B', family: 'qwen3', capability: 'chat', tags: ['chat', 'tool-calling'],
    description: 'The smallest one that still follows a conversation; runs on any CPU', size_gb: 0.64, vram_gb_min: 1, context_length: 40960,
    hf_repo: 'Qwen/Qwen3-0.6B-GGUF', hf_file: 'Qwen3-0.6B-Q8_0.gguf', recommended_slot: 'utility'
  },
  {
    ...blank, ...apache, id: 'qwen3-4b', display_name: 'Qwen3 4B', family: 'qwen3', capability: 'chat', tags: ['chat', 'tool-calling', 'reasoning'],
    description: 'Everyday chat and tools on 4 GB of memory', size_gb: 2.5, vram_gb_min: 4, context_length: 40960,
    hf_repo: 'Qwen/Qwen3-4B-GGUF', hf_file: 'Qwen3-4B-Q4_K_M.gguf'
  },
  {
    ...blank, ...apache, id: 'qwen3-8b', display_name: 'Qwen3 8B', family: 'qwen3', capability: 'chat', tags: ['chat', 'tool-calling', 'reasoning'],
    description: 'A step up for 8 GB of memory', size_gb: 5.03, vram_gb_min: 7, context_length: 40960,
    hf_repo: 'Qwen/Qwen3-8B-GGUF', hf_file: 'Qwen3-8B-Q4_K_M.gguf'
  },
  {
    ...blank, ...apache, id: 'qwen3-30b-a3b', display_name: 'Qwen3 30B-A3B', family: 'qwen3', capability: 'chat',
    tags: ['chat', 'tool-calling', 'reasoning'], description: 'Mixture of experts: answers as fast as a 3B, for 24 GB of memory', size_gb: 18.6,
    vram_gb_min: 21, context_length: 40960, hf_repo: 'Qwen/Qwen3-30B-A3B-GGUF', hf_file: 'Qwen3-30B-A3B-Q4_K_M.gguf'
  },
  {
    ...blank, ...apache, id: 'qwen3-coder-30b-a3b', display_name: 'Qwen3 Coder 30B-A3B', family: 'qwen3-coder', capability: 'chat',
    tags: ['coder', 'tool-calling'], description: 'Mixture of experts for coding agents, with a long context', size_gb: 18.56, vram_gb_min: 21,
    context_length: 262144, hf_repo: 'unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF', hf_file: 'Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf',
    recommended_slot: 'coder'
  },
  {
    ...blank, ...apache, id: 'gpt-oss-20b', display_name: 'gpt-oss 20B', family: 'gpt-oss', capability: 'chat',
    tags: ['chat', 'tool-calling', 'reasoning'], description: 'Mixture of experts that reasons before it answers, for 16 GB of memory', size_gb: 12.11,
    vram_gb_min: 14, context_length: 131072, hf_repo: 'ggml-org/gpt-oss-20b-GGUF', hf_file: 'gpt-oss-20b-mxfp4.gguf'
  },
  {
    ...blank, id: 'llama32-3b', display_name: 'Llama 3.2 3B Instruct', family: 'llama', capability: 'chat', tags: ['chat', 'tool-calling'],
    license: 'llama3.2', license_url: 'https://www.llama.com/llama3_2/license/', description: 'Small and quick, with a long context', size_gb: 2.02,
    vram_gb_min: 3.5, context_length: 131072, hf_repo: 'bartowski/Llama-3.2-3B-Instruct-GGUF', hf_file: 'Llama-3.2-3B-Instruct-Q4_K_M.gguf',
    recommended_slot: 'utility'
  },
  {
    ...blank, ...mit, id: 'phi3-mini', display_name: 'Phi-3 mini 4k', family: 'phi', capability: 'chat', tags: ['chat'],
    description: 'Short tasks in English', size_gb: 2.39, vram_gb_min: 3.5, context_length: 4096,
    hf_repo: 'microsoft/Phi-3-mini-4k-instruct-gguf', hf_file: 'Phi-3-mini-4k-instruct-q4.gguf', recommended_slot: 'utility'
  },
  {
    ...blank, id: 'gemma3-4b', display_name: 'Gemma 3 4B', family: 'gemma', capability: 'vision', tags: ['chat', 'vision'], license: 'gemma',
    license_url: 'https://ai.google.dev/gemma/terms', description: 'Chat that also looks at images', size_gb: 3.34, vram_gb_min: 5,
    context_length: 131072, hf_repo: 'ggml-org/gemma-3-4b-it-GGUF', hf_file: 'gemma-3-4b-it-Q4_K_M.gguf', mmproj_file: 'mmproj-model-f16.gguf'
  },
  {
    ...blank, ...apache, id: 'nomic-embed-text-v1.5-q8_0', display_name: 'Nomic Embed Text 1.5', family: 'nomic', capability: 'embed', tags: ['embed'],
    description: 'Vectors of 768 dimensions, texts up to 8192 tokens; the usual choice', size_gb: 0.15, vram_gb_min: 0.5, context_length: 8192,
    hf_repo: 'nomic-ai/nomic-embed-text-v1.5-GGUF', hf_file: 'nomic-embed-text-v1.5.Q8_0.gguf', recommended_slot: 'embed'
  },
  {
    ...blank, ...mit, id: 'bge-base-en-v1.5-q4_k_m', display_name: 'BGE Base English 1.5', family: 'bge', capability: 'embed', tags: ['embed'],
    description: 'Vectors of 768 dimensions for short English texts', size_gb: 0.07, vram_gb_min: 0.5, context_length: 512,
    hf_repo: 'CompendiumLabs/bge-base-en-v1.5-gguf', hf_file: 'bge-base-en-v1.5-q4_k_m.gguf', recommended_slot: 'embed'
  },
  {
    ...blank, ...apache, id: 'bge-reranker-v2-m3-q4_k_m', display_name: 'BGE Reranker 2 M3', family: 'bge', capability: 'rerank', tags: ['rerank'],
    description: 'Ranks texts in many languages', size_gb: 0.44, vram_gb_min: 1, context_length: 8192, hf_repo: 'gpustack/bge-reranker-v2-m3-GGUF',
    hf_file: 'bge-reranker-v2-m3-Q4_K_M.gguf', recommended_slot: 'rerank'
  },
  {
    ...blank, ...apache, id: 'builtin.jina-reranker-v1-tiny-en-q8', display_name: 'Jina Reranker 1 tiny', family: 'jina', capability: 'rerank',
    tags: ['rerank'], description: 'Ranks English texts at next to no cost; memory recall uses it', size_gb: 0.04, vram_gb_min: 0.5, context_length: 8192,
    hf_repo: 'gpustack/jina-reranker-v1-tiny-en-GGUF', hf_file: 'jina-reranker-v1-tiny-en-Q8_0.gguf', recommended_slot: 'rerank'
  }
]
