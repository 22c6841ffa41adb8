import { fileURLToPath } from 'node:url'
import type { AnyPlugin } from '../../../../kernel/contract/index.js'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'

const CHAT_MAIN = fileURLToPath(new URL('./chat-engine.js', import.meta.url))

/** Device nodes of a host with one GPU, which no engine of the tests opens. */
export const GPU_NODES = ['/dev/kfd', '/dev/dri/renderD128', '/dev/dri/card0']

/** Language models as processes. */
export const chatProvider: AnyPlugin = createFakeProviderPlugin({
  processSpec: ({ bindHost, port, stateDir }) =>
    [{ command: process.execPath, args: [CHAT_MAIN, bindHost, String(port), stateDir], label: 'chat' }]
})

/** A language model and an image engine on one GPU. */
export function sharedGpu (imagePort: number): Readonly<Record<string, string>> {
  return {
    'etc/svc/slots/chat.toml': 'type = "llm"\nprovider = "fake"\ndevice = "gpu-vulkan"\n',
    'etc/svc/slots/img.toml': `type = "image"\nprovider = "imagegen"\ndevice = "gpu-rocm"\nport = ${imagePort}\n`
  }
}

export function chatBody (model = 'chat'): string {
  return JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] })
}
