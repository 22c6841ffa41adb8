import type { Test } from 'tap'
import { apiOf, type Api, type ApiOptions } from '../support.js'
import { engines, files as host } from '../capabilities/host.js'
import { reservePorts } from '../../../ports.js'

const chat = (id: string, more = ''): string => `[models.${id}]\npath = "/dev/null"\ncapabilities = ["chat"]\n${more}`

/** The host of the capabilities, with slots that run and models to choose from. */
export const files: Readonly<Record<string, string>> = {
  ...host,
  'var/lib/svc/registry/registry.toml': host['var/lib/svc/registry/registry.toml']! +
    chat('coder', 'hf_repo = "some/coder"\nhf_filename = "coder.gguf"\nquant = "Q4_K_M"\nsize_bytes = 7\nmmproj = "/secret/place/mmproj.gguf"\n') +
    chat('small') + chat('picky', 'defaults = { profile = "mine" }\n'),
  'etc/svc/slots/agent.toml':
    '# the first one\ntype = "llm"\nprovider = "llm-server"\ndevice = "cpu"\nport = 8081 # fixed\n[model]\ndefault = "chatty"\n',
  'etc/svc/slots/old.toml': 'type = "llm"\nprovider = "llm-server"\ndevice = "cpu"\nport = 8082\n[model]\ndefault = "small"\n',
  'etc/svc/profiles.toml': '[profile.mine]\nimage = "example.com/x:1"\ndevice_class = "gpu"\nbackend = "vulkan"\n'
}

/** Replaces `agent`, makes `helper`, brings embeddings along, and does not name `old`. */
export const stack = {
  name: 'Mine',
  slots: [
    {
      slot: 'agent', model: 'coder', device: 'gpu-vulkan', profile: 'mine', mtp: true, server_extra_args: '--flash-attn on',
      capabilities: [{ child: 'embed', device: 'cpu', model: 'nomic' }]
    },
    { slot: 'helper', model: 'small', device: 'cpu' }
  ]
}

/** Instead of its GPU and its NPU: nothing. */
export const CPU_ONLY: Readonly<Record<string, string>> = {
  'etc/svc/hardware.json': JSON.stringify({ probed_at: '2026-01-01T00:00:00Z', ram_mb: 65_536 })
}

/** New slots get ports that nobody else on this machine uses meanwhile: a dry run tells the one that is free. */
export const { toml: PORT_POOL } = await reservePorts()

export const DEVICE_NODES = ['/dev/dri/renderD128', '/dev/kfd', '/dev/accel/accel0']

const api = apiOf('api-capabilities', 'api-profiles', 'api-slots', 'api-stacks', 'api-status', 'capabilities', 'library', 'stack-catalog')

export function stacksApi (t: Test, more: Readonly<Record<string, string>> = {}, options: ApiOptions = {}): Promise<Api> {
  return api(t, { providers: engines, deviceNodes: DEVICE_NODES, svc: PORT_POOL, files: { ...files, ...more }, ...options })
}

/** What a dry run and the apply after it must agree on. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of two shapes
export function agreement (answer: any): object {
  const { changes, profiles, capabilities, summary, warnings, creates, created, unloads, converged } = answer
  return {
    changes, profiles, capabilities, summary: [...summary].sort(), warnings, creates: creates ?? created,
    unloads: [...unloads ?? converged.unloaded].sort()
  }
}
