"""What a person looks at: tables of scores."""
