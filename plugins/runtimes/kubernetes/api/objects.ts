/** What the driver reads and writes of Kubernetes' objects: no more than that. */
export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly object[]
}

export interface ContainerStatus {
  readonly name: string
  readonly image?: string
  readonly state?: {
    readonly waiting?: { readonly reason?: string, readonly message?: string }
    readonly running?: { readonly startedAt?: string }
    readonly terminated?: {
      readonly exitCode: number
      readonly reason?: string
      readonly message?: string
      readonly startedAt?: string | null
    }
  }
}

export interface PodCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
}

export interface Pod {
  readonly metadata: ObjectMeta
  readonly spec: {
    readonly schedulingGates?: readonly unknown[]
    readonly nodeSelector?: object
    readonly tolerations?: readonly object[]
    readonly runtimeClassName?: string
    readonly imagePullSecrets?: readonly object[]
    readonly hostNetwork?: boolean
    readonly containers: ReadonlyArray<{ readonly name: string, readonly image: string, readonly resources?: object }>
    readonly volumes?: ReadonlyArray<{ readonly persistentVolumeClaim?: { readonly claimName: string } }>
    readonly terminationGracePeriodSeconds?: number
    readonly activeDeadlineSeconds?: number
  }
  readonly status?: {
    readonly phase?: string
    readonly reason?: string
    readonly message?: string
    readonly podIP?: string
    readonly hostIP?: string
    readonly conditions?: readonly PodCondition[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

export interface ClusterEvent {
  readonly metadata: ObjectMeta
  readonly reason?: string
  readonly message?: string
  readonly count?: number
}

export interface ClusterService {
  readonly metadata: ObjectMeta
  readonly spec: { readonly ports: ReadonlyArray<{ readonly name: string, readonly port: number, readonly nodePort?: number }> }
}

export interface ObjectList<T> {
  readonly metadata: { readonly resourceVersion?: string, readonly continue?: string }
  readonly items: readonly T[]
}

/** The body of a refusal. */
export interface ApiStatus {
  readonly message?: string
  readonly reason?: string
  readonly code?: number
}
