import t, { type Test } from 'tap'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import llmServer from '../../../../plugins/providers/llm-server/index.js'
import { apiOf, type Api } from '../support.js'

const api = apiOf('api-slots')

type Call = readonly [method: string, path: string, body: unknown]

async function refused (t: Test, gateway: Api, [method, path, body]: Call, message: RegExp): Promise<void> {
  const { status, json } = await gateway.call(method, path, body)
  t.equal(status, 400, `${method} ${path}`)
  t.match(json.error, { code: 'slot.config_error', message })
}

t.test('a slot that moves loses a profile that nobody chose, and is refused with one that somebody did', async t => {
  const gateway = await api(t, {
    providers: [createFakeProviderPlugin(), llmServer],
    files: {
      'etc/svc/profiles.toml': '[profile.mine]\nimage = "x"\nbackend = "rocm"\ndevice_class = "gpu"\nflags = "--threads 2"\n',
      'etc/svc/slots/chat.toml': 'provider = "llm-server"\ndevice = "cpu"\nprofile = "cpu-llm"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/slots/tuned.toml': 'provider = "llm-server"\ndevice = "gpu-rocm"\nprofile = "mine"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/slots/liked.toml': 'provider = "llm-server"\ndevice = "gpu-rocm"\nprofile = "rocm-moe"\n[model]\ndefault = "moe"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n[models.moe]\npath = "/dev/null"\n[models.moe.defaults]\nprofile = "rocm-moe"\n'
    }
  })
  const put = (name: string, patch: object): ReturnType<typeof gateway.call> => gateway.call('PUT', `/api/slots/${name}/config`, patch)
  const file = async (name: string): Promise<Record<string, unknown>> => (await gateway.call('GET', `/api/slots/${name}/config`)).json

  t.match(await put('chat', { device: 'gpu-rocm' }), { status: 200, json: { device: 'gpu-rocm', profile: 'rocm' } }, 'from the CPU to a GPU')
  t.notOk('profile' in await file('chat'), 'the default is derived and not written')
  await put('chat', { profile: 'rocm' })
  t.match(await put('chat', { device: 'cpu' }), { status: 200, json: { device: 'cpu', profile: 'cpu-llm' } }, 'and back')
  t.match(await gateway.call('POST', '/api/slots/chat/backend', { backend: 'vulkan' }), { status: 200, json: { profile: 'vulkan' } })
  t.match(await put('liked', { device: 'gpu-cuda' }), { status: 200, json: { profile: 'cuda' } }, 'what the model asked for is no choice')

  const way = /profile 'mine' of slot 'tuned' does not suit gpu-vulkan: it is for rocm.*null for the usual one \('vulkan'\)/
  await refused(t, gateway, ['PUT', '/api/slots/tuned/config', { device: 'gpu-vulkan' }], way)
  await refused(t, gateway, ['POST', '/api/slots/tuned/backend', { backend: 'cpu' }], /'cpu-llm'/)
  t.match(await put('tuned', { device: 'gpu-vulkan', profile: null }), { status: 200, json: { device: 'gpu-vulkan', profile: 'vulkan' } }, 'the way out')

  for (const pair of [{ device: 'gpu-cuda', profile: 'rocm' }, { device: 'cpu', profile: 'rocm' }, { device: 'gpu-cuda', profile: 'cpu-llm' }]) {
    for (const call of [['PUT', '/api/slots/chat/config', pair], ['POST', '/api/slots', { name: 'new', provider: 'llm-server', ...pair }]] as const) {
      await refused(t, gateway, call, /rocm|cpu/)
    }
  }
  await put('chat', { profile: 'rocm' })
  await refused(t, gateway, ['PUT', '/api/slots/chat/config', { device: 'gpu-cuda', profile: 'rocm' }], /contradict/)
})
