"""What passes are, how they are found, and running pipelines of ours and of upstream's. No pass is here."""
