/** What the files of the gateway as a service of the machine are made of. */
export interface GatewayUnit {
  /** Absolute paths of Node and of the command line's program. */
  readonly node: string
  readonly program: string
  /** Folder of the trees of releases, which the gateway updates itself in; null where it does not. */
  readonly releases: string | null
  /** Root of etc/svc and var/lib/svc; null: the system's. */
  readonly home: string | null
  readonly user: string
  /** Groups that open GPUs and the container engine, and that read the journal, of those that this machine has. */
  readonly groups: readonly string[]
  /** Where programs are looked for that engines and installers need. */
  readonly path: string
}

export const UNIT_NAME = 'svc-api.service'
export const JOB_NAME = 'dev.svc.gateway'
/** In the first line of what is written here: only such a file is overwritten or removed. */
export const MARK = 'written by svc service install'

/** A unit of systemd. Pure. */
export function systemdUnit ({ node, program, releases, home, user, groups, path }: GatewayUnit): string {
  const command = [node, program, 'serve', ...home === null ? [] : ['--home', home]].map(unitWord).join(' ')
  const writable = [...home === null ? ['-/etc/svc', '-/var/lib/svc'] : [home], ...releases === null ? [] : [releases]]
  const isInHome = [node, program, home ?? ''].some(place => /^\/(home|root|run\/user)\//.test(place))
  return `# ${MARK}
[Unit]
Description=svc, a local inference gateway
Wants=network-online.target
After=network-online.target docker.service podman.socket

[Service]
Type=notify
# readiness is told by systemd-notify, a child of the gateway
NotifyAccess=all
ExecStart=${command}
User=${user}
Group=${user}
${groups.length === 0 ? '' : `SupplementaryGroups=${groups.join(' ')}\n`}Environment=${unitWord(`PATH=${path}`)}
${home === null ? 'StateDirectory=svc\nStateDirectoryMode=0750\nConfigurationDirectory=svc\nConfigurationDirectoryMode=0750\n' : ''}Restart=on-failure
RestartSec=2
# a gateway that was updated asks for its restart
RestartForceExitStatus=75
SuccessExitStatus=75
# the first start may pull images, a stop lets running answers end
TimeoutStartSec=300
TimeoutStopSec=120
# engines that run as processes outlive a crash of the gateway, and the next one takes them over
KillMode=process
LimitNOFILE=65536
UMask=0027

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=${isInHome ? 'read-only' : 'yes'}
ReadWritePaths=${writable.map(unitWord).join(' ')}
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
# Node asks for memory protection keys when it starts; whatever else is not in the set fails, and kills nothing
SystemCallFilter=@system-service @pkey
SystemCallErrorNumber=EPERM
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=multi-user.target
`
}

/** What makes systemd-sysusers create the user. Pure. */
export function sysusersFile (user: string): string {
  return `# ${MARK}\nu ${user} - "svc gateway" /var/lib/svc\n`
}

/** Whether a unit or a job of ours starts the gateway of this home; null is the system's. Pure. */
export function runsHome (text: string, home: string | null): boolean {
  const [, command] = /^ExecStart=(.*)$/m.exec(text) ?? []
  if (command === undefined) {
    const [, named] = /<string>--home<\/string><string>([^<]*)</.exec(text) ?? []
    return (named?.replaceAll('&lt;', '<').replaceAll('&amp;', '&') ?? null) === home
  }
  return home === null ? !command.includes(' --home ') : command.endsWith(` --home ${unitWord(home)}`)
}

/** One word of a line of a unit: specifiers and variables are meant as they are. Pure. */
function unitWord (word: string): string {
  const plain = word.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /[\s"'\\;]/.test(plain) ? `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : plain
}
