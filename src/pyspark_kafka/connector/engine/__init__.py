"""What every engine does around the contracts: holds them, and stands in for what a stream leaves to it.

Entry points: `checked_read.CheckedMicroBatchStream`, `checked_write.CheckedStreamingWrite`.
Invariant: a wrapper changes nothing that keeps its contract. Layer: connector.
"""
