import { runShare } from './campaign.ts'

// A share whose campaign is gone has nobody to tell.
process.once('disconnect', () => process.exit(1))
process.once('message', (share: Parameters<typeof runShare>[0]) => {
  runShare(share).then(
    (tally) => {
      process.send?.(tally, () => process.exit(0))
    },
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
})
