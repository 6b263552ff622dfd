/** How far long work has come, for whoever watches. */
export interface Progress {
  update(text: string): void
  /** Takes the display away. */
  end(): void
}

export const noProgress: Progress = { update: () => undefined, end: () => undefined }
