import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { AnyPlugin } from '../../../../kernel/contract/index.js'
import llmServer from '../../../../plugins/providers/llm-server/index.js'
import npuRt from '../../../../plugins/providers/npu-rt/index.js'
import sttEngine from '../../../../plugins/providers/stt-engine/index.js'
import ttsCpu from '../../../../plugins/providers/tts-cpu/index.js'
import ttsGpu from '../../../../plugins/providers/tts-gpu/index.js'
import { writeTree } from '../../../kernel/config/support.js'
import { deviceNodesOf, type Recording } from '../../../kernel/hardware/machines/recording.js'
import { api, groupOf, type Api, type ApiOptions } from '../support.js'

/** The engines that come with the release; imagegen is one of `group`. */
export const shippedEngines: readonly AnyPlugin[] = [llmServer, npuRt, sttEngine, ttsCpu, ttsGpu]

/** What shows a machine, and what chooses engines and models for it. */
const group = groupOf(
  'agent-personas', 'agents', 'api-backends', 'api-capabilities', 'api-config', 'api-hardware', 'api-install', 'api-services', 'api-slots',
  'api-stacks', 'api-stats', 'capabilities', 'companions', 'hub', 'imagegen', 'library', 'pull', 'stack-catalog'
)

/** These with the engines of the release, on a machine that was recorded: its files, device nodes and nvidia-smi. */
export async function apiOn (t: Test, machine: Recording, options: ApiOptions = {}): Promise<Api> {
  const { tree, nvidiaSmi } = machine
  const root = join(t.testdir(), 'machine')
  writeTree(root, tree)
  const bin = join(root, 'bin')
  await mkdir(bin, { recursive: true })
  if (nvidiaSmi !== undefined) {
    await writeFile(join(bin, 'nvidia-smi'), `#!/bin/sh\necho "${nvidiaSmi.trim()}"\n`)
    await chmod(join(bin, 'nvidia-smi'), 0o755)
  }
  return await api(t, {
    machine: { root, env: { PATH: bin } },
    deviceNodes: deviceNodesOf(machine),
    group,
    providers: shippedEngines,
    ...options
  })
}
