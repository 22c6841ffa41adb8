import t from 'tap'
import type { ContainerForm } from '../../../../kernel/contract/provider/engine-runtime.js'
import { factsOf, type EngineFacts } from '../../../../kernel/runtime/docker/docker-connect.js'
import { createBody, unsupported, type ContainerSpec } from '../../../../kernel/runtime/docker/docker-create.js'
import { tinyContainer } from '../../../../kernel/testing/tiny-engine.js'

const docker: EngineFacts = { kind: 'docker', version: '28.2.0', rootless: false, selinux: false }
const podman: EngineFacts = { ...docker, kind: 'podman', version: '5.4.0' }
const D = `sha256:${'1a'.repeat(32)}`

function spec (form: Partial<ContainerForm> = {}): ContainerSpec {
  const tiny = tinyContainer('repo/name:tag', { name: 'svc-a', port: 8081, labels: { 'svc.slot': 'a' }, env: { A: 'x=y', B: '' } })
  return { ...tiny, form: { ...tiny.form, ...form } }
}

t.test('a minimal spec becomes a container with safe defaults', async t => {
  const body = createBody(spec(), docker)
  t.match(body, {
    Image: 'repo/name:tag',
    Env: ['PORT=8081', 'HOST=0.0.0.0', 'A=x=y', 'B='],
    Labels: { 'svc.slot': 'a', 'svc.port': '8081' },
    ExposedPorts: { '8081/tcp': {} },
    HostConfig: {
      Init: true,
      NetworkMode: 'bridge',
      PortBindings: { '8081/tcp': [{ HostIp: '127.0.0.1', HostPort: '8081' }] },
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '5m', 'max-file': '2' } },
      IpcMode: 'private',
      Mounts: { length: 0 },
      Devices: { length: 0 },
      DeviceRequests: { length: 0 },
      GroupAdd: { length: 0 },
      SecurityOpt: { length: 0 },
      Ulimits: { length: 0 }
    }
  })
  t.notMatch(JSON.stringify(body), /Privileged|Entrypoint|WorkingDir|ShmSize|CapAdd/, 'nothing that was not asked for')
})

t.test('a container is created with everything that its form names', async t => {
  t.match(createBody(spec({
    digest: D,
    entrypoint: ['/bin/sh', '-c'],
    workingDir: '/app',
    mounts: [{ source: '/models', target: '/models', readOnly: true }, { source: '/cache: odd', target: '/c', readOnly: false }],
    devices: ['/dev/kfd', '/dev/dri/renderD128'],
    cdiDevices: ['nvidia.com/gpu=0'],
    groups: [110, 44],
    ipc: 'host',
    shmSizeBytes: 1024,
    ulimits: { memlock: { soft: -1, hard: -1 } },
    securityOpts: ['label=disable']
  }), docker), {
    Image: `repo/name@${D}`,
    Entrypoint: ['/bin/sh', '-c'],
    WorkingDir: '/app',
    HostConfig: {
      Mounts: [
        { Type: 'bind', Source: '/models', Target: '/models', ReadOnly: true },
        { Type: 'bind', Source: '/cache: odd', Target: '/c', ReadOnly: false }
      ],
      Devices: [
        { PathOnHost: '/dev/kfd', PathInContainer: '/dev/kfd', CgroupPermissions: 'rw' },
        { PathOnHost: '/dev/dri/renderD128', PathInContainer: '/dev/dri/renderD128', CgroupPermissions: 'rw' }
      ],
      DeviceRequests: [{ Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=0'] }],
      GroupAdd: ['110', '44'],
      IpcMode: 'host',
      ShmSize: 1024,
      Ulimits: [{ Name: 'memlock', Soft: -1, Hard: -1 }],
      SecurityOpt: ['label=disable']
    }
  })
})

t.test('the host\'s network publishes nothing', async t => {
  const body = createBody(spec({ network: 'host', publishHost: null }), docker)
  t.equal(body.HostConfig?.NetworkMode, 'host')
  t.notMatch(JSON.stringify(body), /PortBindings|ExposedPorts/)
  t.match(body.Labels, { 'svc.port': '8081' }, 'the label tells the port to the next gateway')
})

t.test('rootless Podman keeps its groups by annotation, and SELinux labels are switched off for mounts alone', async t => {
  const mounts = [{ source: '/m', target: '/m', readOnly: true }]
  const cases: readonly (readonly [string, Partial<ContainerForm>, Partial<EngineFacts>, object])[] = [
    ['rootless Podman', { groups: [110] }, { kind: 'podman', rootless: true },
      { GroupAdd: undefined, Annotations: { 'run.oci.keep_original_groups': '1' } }],
    ['rootless Podman, no groups', {}, { kind: 'podman', rootless: true }, { GroupAdd: undefined, Annotations: undefined }],
    ['rootless Docker', { groups: [110] }, { rootless: true }, { GroupAdd: ['110'] }],
    ['rootful Podman', { groups: [110] }, { kind: 'podman' }, { GroupAdd: ['110'] }],
    ['SELinux and mounts', { mounts }, { selinux: true }, { SecurityOpt: ['label=disable'] }],
    ['SELinux, no mounts', {}, { selinux: true }, { SecurityOpt: [] }],
    ['SELinux, said already', { mounts, securityOpts: ['label=type:x'] }, { selinux: true }, { SecurityOpt: ['label=type:x'] }]
  ]
  for (const [title, form, facts, expected] of cases) {
    t.match(createBody(spec(form), { ...docker, ...facts }).HostConfig, expected, title)
  }
})

t.test('an engine that would leave the GPU out without a word', async t => {
  const cdi = spec({ cdiDevices: ['nvidia.com/gpu=all'] })
  const old = { ...podman, version: '4.3.1' }
  for (const [facts, refused] of [
    [old, true], [{ ...podman, version: '5.3.9' }, true], [podman, false], [{ ...podman, version: '6.0.0-rc1' }, false],
    [{ ...podman, version: 'unknown' }, false], [{ ...docker, version: '20.10.24' }, false]
  ] as const) {
    t.equal(unsupported(cdi, facts)?.code ?? null, refused ? 'runtime.failed' : null, `${facts.kind} ${facts.version}`)
  }
  t.equal(unsupported(spec(), old), null)
})

t.test('what engines say of themselves', async t => {
  t.same(factsOf({ ServerVersion: '20.10.24', SecurityOptions: ['name=seccomp,profile=default', 'name=rootless', 'name=selinux'] }),
    { kind: 'docker', version: '20.10.24', rootless: true, selinux: true })
  t.same(factsOf({ ServerVersion: '4.3.1', BuildahVersion: '1.28.2', Rootless: true }),
    { kind: 'podman', version: '4.3.1', rootless: true, selinux: false })
  t.same(factsOf({}), { kind: 'docker', version: 'unknown', rootless: false, selinux: false })
})
