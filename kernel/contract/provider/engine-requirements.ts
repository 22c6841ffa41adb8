/** What hardware can have, as the probe tells. Of GPUs those count that the slot may use. */
export const hostFeatures = ['compute', 'vulkan', 'unified-memory', 'npu'] as const
export type HostFeature = typeof hostFeatures[number]

/**
 * What an engine needs of the machine besides one of its devices. Judged before each launch and when a slot is written.
 * What the probe cannot tell counts as met.
 */
export interface EngineRequirements {
  /** MiB of the best GPU that the slot may use, or of the host for other devices. */
  readonly memoryMb?: number
  /** Kernel drivers of GPUs, one of which the slot's must have: `amdgpu`, `nvidia`, `i915`, `xe`. */
  readonly drivers?: readonly string[]
  /** All of them. */
  readonly features?: readonly HostFeature[]
}
