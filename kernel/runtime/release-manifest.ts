import type { Manifest } from '../contract/index.js'

/**
 * Images of a gateway that has no manifest.json. Those without a digest are pulled by their tag with a warning.
 *
 * The makers of the NPU runtime publish packages and archives and no image; `npu-rt` is one that others build from
 * their sources.
 */
export const releaseManifest: Manifest = {
  _schema: 'svc.manifest.v1',
  version: '',
  channel: 'stable',
  toolbox_images: {
    'cpu': { tag: 'ghcr.io/ggml-org/llama.cpp:server', digest: null },
    'vulkan': { tag: 'ghcr.io/ggml-org/llama.cpp:server-vulkan', digest: null },
    'cuda': { tag: 'ghcr.io/ggml-org/llama.cpp:server-cuda', digest: null },
    'rocm': { tag: 'ghcr.io/ggml-org/llama.cpp:server-rocm', digest: null },
    'npu-rt': { tag: 'ghcr.io/fonix232/fastflowlm:v0.9.39', digest: null },
    'tts-cpu': { tag: 'ghcr.io/remsky/kokoro-fastapi-cpu:v0.6.0', digest: null },
    'tts-gpu': { tag: 'docker.io/vllm/vllm-omni-rocm:v0.28.0', digest: null },
    'tts-gpu-cuda': { tag: 'docker.io/vllm/vllm-omni:v0.28.0', digest: null },
    'speaches': { tag: 'ghcr.io/speaches-ai/speaches:latest-cpu', digest: null },
    'speaches-cuda': { tag: 'ghcr.io/speaches-ai/speaches:latest-cuda', digest: null },
    'whisper': { tag: 'ghcr.io/ggml-org/whisper.cpp:main', digest: null },
    'whisper-vulkan': { tag: 'ghcr.io/ggml-org/whisper.cpp:main-vulkan', digest: null },
    'whisper-cuda': {
      tag: 'ghcr.io/ggml-org/whisper.cpp:main-cuda-233fe1fc9b48a09e361d3594520838ca266537fe',
      digest: 'sha256:22df236658b55d333be05872149076a39d7b2551a900ac4027eb5d4787f10f68'
    },
    'imagegen': { tag: 'docker.io/kyuz0/amd-strix-halo-comfyui:latest', digest: null, devices: ['gpu-rocm'] }
  }
}
