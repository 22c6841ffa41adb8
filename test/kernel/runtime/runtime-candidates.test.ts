import t from 'tap'
import { parseDockerHost, publishedHost, type DockerEndpoint } from '../../../kernel/runtime/docker/docker-endpoint.js'
import { runtimeCandidates, type DriverSetting } from '../../../kernel/runtime/runtime-candidates.js'

t.test('DOCKER_HOST is read in each form that Docker takes', async t => {
  const cases: readonly (readonly [string, Record<string, string>, Partial<DockerEndpoint>])[] = [
    ['unix:///run/docker.sock', {}, { kind: 'socket', path: '/run/docker.sock' }],
    ['/run/docker.sock', {}, { kind: 'socket', path: '/run/docker.sock' }],
    ['tcp://127.0.0.1:2375', {}, { kind: 'tcp', host: '127.0.0.1', port: 2375, certFolder: null }],
    ['127.0.0.1:2375', {}, { kind: 'tcp', host: '127.0.0.1', port: 2375, certFolder: null }],
    ['box.lan', {}, { kind: 'tcp', host: 'box.lan', port: 2375 }],
    ['tcp://[fd00::1]:2375', {}, { kind: 'tcp', host: 'fd00::1', port: 2375 }],
    ['tcp://box.lan:2376', { HOME: '/home/me' }, { kind: 'tcp', port: 2376, certFolder: '/home/me/.docker' }],
    ['tcp://box.lan', { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/certs' }, { kind: 'tcp', port: 2376, certFolder: '/certs' }],
    ['https://box.lan:443', { DOCKER_CERT_PATH: '/certs' }, { kind: 'tcp', port: 2376, certFolder: '/certs' }],
    ['ssh://me@box.lan', { SSH_AUTH_SOCK: '/agent' }, { kind: 'ssh', host: 'box.lan', port: 22, user: 'me', agent: '/agent' }],
    ['ssh://box.lan:2222', { USER: 'you' }, { kind: 'ssh', host: 'box.lan', port: 2222, user: 'you', agent: null }]
  ]
  for (const [text, env, expected] of cases) t.match(parseDockerHost(text, env), expected, text)
  for (const text of ['unix://', 'unix://relative.sock', 'ftp://box.lan', 'tcp://', 'tcp://:2375:1', 'a b']) {
    t.type(parseDockerHost(text, {}), 'string', `${text} is refused`)
  }
})

t.test('where published ports are reached', async t => {
  for (const [text, host] of [['unix:///x.sock', '127.0.0.1'], ['tcp://box.lan:2375', 'box.lan'], ['ssh://me@10.0.0.7', '10.0.0.7']] as const) {
    t.equal(publishedHost(parseDockerHost(text, {}) as DockerEndpoint), host)
  }
})

t.test('where a container engine is looked for', async t => {
  const [docker, desktop] = ['unix:///var/run/docker.sock', 'unix:///home/me/.docker/run/docker.sock']
  const [rootless, podman] = ['unix:///run/user/7/podman/podman.sock', 'unix:///run/podman/podman.sock']
  const mine = 'unix:///run/user/7/docker.sock'
  const cases: readonly (readonly [string, DriverSetting, Record<string, string>, number | null, readonly string[]])[] = [
    ['root service', 'auto', {}, 0, [docker, podman]],
    ['root with a home', 'auto', { HOME: '/home/me' }, 0, [docker, desktop, podman]],
    ['a user', 'auto', { HOME: '/home/me', XDG_RUNTIME_DIR: '/run/user/7' }, 7, [docker, mine, desktop, rootless, podman]],
    ['a user without XDG_RUNTIME_DIR', 'auto', {}, 7, [docker, mine, rootless, podman]],
    ['a system without user ids', 'auto', {}, null, [docker, podman]],
    ['DOCKER_HOST first', 'auto', { DOCKER_HOST: 'tcp://box:1' }, 0, ['tcp://box:1', docker, podman]],
    ['an empty DOCKER_HOST', 'auto', { DOCKER_HOST: '' }, 0, [docker, podman]],
    ['docker asked for', 'docker', { XDG_RUNTIME_DIR: '/run/user/7', DOCKER_HOST: 'tcp://box:1' }, 7, ['tcp://box:1', docker, mine]],
    ['podman asked for', 'podman', { XDG_RUNTIME_DIR: '/run/user/7', DOCKER_HOST: 'tcp://box:1' }, 7, ['tcp://box:1', rootless, podman]],
    ['processes asked for', 'process', { DOCKER_HOST: 'tcp://box:1' }, 7, []]
  ]
  for (const [title, driver, env, uid, urls] of cases) {
    const found = runtimeCandidates(driver, env, uid)
    t.same(found.map(({ endpoint }) => typeof endpoint === 'string' ? endpoint : endpoint.url), urls, title)
    for (const { accepts } of found) t.same(accepts, driver === 'auto' ? ['docker', 'podman'] : [driver])
  }
  t.type(runtimeCandidates('auto', { DOCKER_HOST: 'ftp://x' }, 0)[0]?.endpoint, 'string', 'a bad address is a candidate with a problem')
})
